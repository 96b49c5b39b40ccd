# SPDX-License-Identifier: Apache-2.0
"""A real Slurm (Debian's slurmctld, slurmd, munged) of two nodes on this machine, private to the tests: its own key, its own folder,
and ports on loopback only."""
import contextlib
import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

import driver

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
NODES = ("n1", "n2")


def is_here():
    return all(shutil.which(name, path=PATH) for name in ("munged", "slurmctld", "slurmd", "srun", "scancel", "sinfo"))


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Cluster:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="slurm-"))  # 0700
        self.daemons = []
        self.environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def start(self):
        for name in ("state", "log", "munge", *(f"{kind}/{node}" for kind in ("spool", "tmp") for node in NODES)):
            (self.folder / name).mkdir(parents=True, mode=0o700)
        key = self.folder / "munge/key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))
        (self.folder / "slurm.conf").write_text(self.configuration())
        munge = self.folder / "munge"
        self.run_daemon("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge}/socket", f"--pid-file={munge}/pid",
                        f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        driver.wait_for((munge / "socket").exists)
        self.run_daemon("slurmctld", "-D")
        for node in NODES:
            self.run_daemon("slurmd", "-D", "-N", node)
        driver.wait_for(lambda: self.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.strip() == str(len(NODES)))

    def configuration(self):
        controller, *ports = free_ports(1 + len(NODES))
        host, user, folder = socket.gethostname().split(".")[0], getpass.getuser(), self.folder
        lines = ["ClusterName=drover", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={controller}", f"SlurmUser={user}",
                 f"SlurmdUser={user}", "AuthType=auth/munge", f"AuthInfo=socket={folder}/munge/socket",
                 "CommunicationParameters=NoCtldInAddrAny,NoInAddrAny", f"StateSaveLocation={folder}/state",
                 f"SlurmctldPidFile={folder}/ctld.pid", f"SlurmdPidFile={folder}/%n.pid", f"SlurmdSpoolDir={folder}/spool/%n",
                 f"TmpFS={folder}/tmp/%n", f"SlurmctldLogFile={folder}/log/ctld", f"SlurmdLogFile={folder}/log/%n",
                 "ProctrackType=proctrack/pgid", "TaskPlugin=task/none", "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core",
                 "SchedulerParameters=bf_interval=1",  # seconds; heterogeneous jobs begin in its rounds alone
                 "SlurmdParameters=config_overrides", "MpiDefault=none", "ReturnToService=2", "KillWait=2", "SwitchType=switch/none",
                 "JobAcctGatherType=jobacct_gather/none", "AccountingStorageType=accounting_storage/none"]
        lines += [f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 State=UNKNOWN"
                  for node, port in zip(NODES, ports)]
        lines += ["PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4"]
        return "\n".join(lines) + "\n"

    def run_daemon(self, name, *args):
        log = self.folder / "log" / f"{len(self.daemons)}-{name}"
        with open(log, "wb") as output:
            self.daemons.append(subprocess.Popen([shutil.which(name, path=PATH), *args], stdin=subprocess.DEVNULL, stdout=output,
                                                 stderr=output, env=self.environment, start_new_session=True))

    def run(self, *command, **kwargs):
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=driver.LIMIT,
                              env=self.environment, check=False, **kwargs)

    def start_step(self, *command):
        return subprocess.Popen(["srun", *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=self.environment)

    def logs(self):
        return "".join(f"== {log.name}\n{log.read_text(errors='replace')[-2000:]}" for log in sorted((self.folder / "log").iterdir()))

    def stop(self):
        """No step outlives its test: what runs one, slurmstepd, would outlive the daemons."""
        self.run("scancel", "--user", getpass.getuser())
        driver.wait_for(lambda: self.run("squeue", "-h").stdout == "")
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder)
