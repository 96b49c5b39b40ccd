# SPDX-License-Identifier: Apache-2.0
"""A real browser for tests: Chromium by its WebDriver, spoken over HTTP."""
import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

DRIVER = shutil.which("chromedriver")
LIMIT = 60.0  # seconds for any one command


class Browser:
    """One headless window. Close it by `with`; nothing of it is left then."""

    def __init__(self, width, height, dark=False, script=True):
        self.folder = tempfile.mkdtemp(prefix="browser-")
        self.server = subprocess.Popen([DRIVER, "--port=0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True, start_new_session=True,
                                       env={**os.environ, "TMPDIR": self.folder, "HOME": self.folder})
        self.session = None
        try:
            for line in self.server.stdout:  # it prints the port that it chose
                if port := re.search(r"started successfully on port (\d+)", line):
                    break
            else:
                raise AssertionError("chromedriver does not start")
            self.address = f"http://127.0.0.1:{port[1]}"
            self.session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": self.wishes(width, height, dark, script)}})["sessionId"]
        except BaseException:
            self.__exit__()
            raise

    def wishes(self, width, height, dark, script):
        arguments = ["--headless=new", "--disable-dev-shm-usage", "--disable-gpu", f"--user-data-dir={self.folder}/profile",
                     f"--window-size={width},{height}"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        if dark:
            arguments.append("--blink-settings=preferredColorScheme=0")
        screen = {"deviceMetrics": {"width": width, "height": height, "pixelRatio": 1, "mobile": False}}
        prefs = {} if script else {"profile.managed_default_content_settings.javascript": 2}
        return {"goog:chromeOptions": {"args": arguments, "mobileEmulation": screen, "prefs": prefs},
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.address + path, method=method, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=LIMIT) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()[:2000]) from None

    def do(self, command, body=None):
        return self.call("POST", f"/session/{self.session}/{command}", body or {})

    def open(self, path):
        self.do("url", {"url": "about:blank"})  # the browser's own first page asks for much
        self.requests()
        self.do("url", {"url": pathlib.Path(path).resolve().as_uri()})

    def script(self, text, *arguments):
        return self.do("execute/sync", {"script": text, "args": list(arguments)})

    def keys(self, *keys):
        """Presses keys one after the other, wherever the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.do("actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def log(self, kind):
        return self.do("se/log", {"type": kind})

    def requests(self):
        """The addresses that were asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]

    def screenshot(self, path):
        """The whole page."""
        width, height = self.script("return [innerWidth, document.documentElement.scrollHeight]")
        picture = self.do("goog/cdp/execute", {"cmd": "Page.captureScreenshot", "params": {
            "captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}}})
        pathlib.Path(path).write_bytes(base64.b64decode(picture["data"]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            if self.session:
                self.call("DELETE", f"/session/{self.session}")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.server.pid, signal.SIGKILL)
        self.server.wait()
        self.server.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)
