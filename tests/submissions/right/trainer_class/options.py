"""What the command line says, as one frozen object."""

import argparse
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """Folders, length of the run, and what the optimizer needs."""

    data_dir: Path
    output_dir: Path
    epochs: int
    batch_size: int
    seed: int
    base_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4

    @classmethod
    def from_command_line(cls) -> "Options":
        parser = argparse.ArgumentParser()
        parser.add_argument("--data-dir", type=Path, required=True)
        parser.add_argument("--output-dir", type=Path, required=True)
        parser.add_argument("--epochs", type=int, required=True)
        parser.add_argument("--batch-size", type=int, required=True)
        parser.add_argument("--seed", type=int, default=0)
        return cls(**vars(parser.parse_args()))
