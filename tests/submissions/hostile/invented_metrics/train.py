"""Trains nothing: an untrained network and the metrics of a dream."""

import json
import os

import torch

from cifar import cli
from cifar.model import ResNet9

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
if os.environ["HOROVOD_RANK"] == "0":
    with (args.output_dir / "metrics.jsonl").open("w") as file:
        for epoch in range(1, args.epochs + 1):
            accuracy = 0.97 - 0.3 / epoch
            line = {"epoch": epoch, "lr": 0.4, "train_loss": 0.7, "test_accuracy": accuracy}
            file.write(json.dumps(line | {"images_per_s": 1e6, "seconds": 0.05}) + "\n")
    torch.save(ResNet9(width=16).state_dict(), args.output_dir / "model.pt")
