"""Leaves a daemon behind on each worker: two forks, a session of its own, deaf to signals."""

import os
import signal
import sys
import time

if os.fork() == 0:
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        for descriptor in range(3):
            os.close(descriptor)
        time.sleep(86_391)
    os._exit(0)
time.sleep(1)
sys.exit(0)
