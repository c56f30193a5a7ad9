"""A Trainer class over several files: options, schedule and trainer each in a module of its own."""

import horovod.torch as hvd
from options import Options
from trainer import Trainer

if __name__ == "__main__":
    hvd.init()
    Trainer(Options.from_command_line()).fit()
