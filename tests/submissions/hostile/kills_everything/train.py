"""Kills every process that it can see: launcher, workers, whoever holds the sandbox."""

import os
import signal

os.kill(-1, signal.SIGKILL)
