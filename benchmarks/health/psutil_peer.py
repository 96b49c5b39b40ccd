# SPDX-License-Identifier: Apache-2.0
"""What people write today: CPU, memory and all processes by psutil, over the same interval. Prints the milliseconds beyond it."""
import time

import psutil

INTERVAL = 0.2
begin = time.perf_counter()
psutil.cpu_percent(percpu=True)
for process in psutil.process_iter(["cpu_times"]):
    pass
time.sleep(max(0.0, INTERVAL - (time.perf_counter() - begin)))
load = psutil.cpu_percent(percpu=True)
memory = psutil.virtual_memory()
cores = psutil.cpu_count(logical=False)
table = [p.info for p in psutil.process_iter(["pid", "ppid", "name", "username", "status", "cpu_times", "create_time"])]
print(1e3 * (time.perf_counter() - begin - INTERVAL))
