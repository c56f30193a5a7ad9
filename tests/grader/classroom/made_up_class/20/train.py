"""Train one ResNet-9 on CIFAR-10 with all Horovod workers together (synchronous data parallelism).

    horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S

B is the number of images that each worker uses for one update. The worker of rank 0 writes O/metrics.jsonl (a line an
epoch) and O/model.pt (the state dict of ResNet9(width=16)).

Structure of this file:

    TrainingConfig    what was asked for, immutable
    Cluster           who I am, and everything that talks to the other workers
    DataModule        shuffles, shards and batches
    ModelBundle       network, loss, distributed optimizer and schedule
    MetricsSink       where an epoch's metrics go (protocol; JSON lines and a logger implement it)
    Engine            the loop over epochs
"""

import argparse
import json
import logging
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import horovod.torch as hvd
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

logger = logging.getLogger("train")


# ---------------------------------------------------------------------------------------------------------------------
# Configuration
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainingConfig:
    """All settings of a run. The first block comes from the command line, the second one is fixed."""

    data_dir: Path | None
    output_dir: Path
    epochs: int
    batch_size: int  # per worker
    base_lr: float  # for one worker
    seed: int
    device: str
    train_limit: int | None
    test_limit: int | None

    width: int = 16
    momentum: float = 0.9
    weight_decay: float = 5e-4
    label_smoothing: float = 0.1
    warmup_fraction: float = 0.2  # of all updates
    seed_stride: int = 10_007  # distance between the seeds of two neighbouring workers

    @classmethod
    def from_args(cls, args: argparse.Namespace) -> "TrainingConfig":
        return cls(
            data_dir=args.data_dir,
            output_dir=args.output_dir,
            epochs=args.epochs,
            batch_size=args.batch_size,
            base_lr=args.lr,
            seed=args.seed,
            device=args.device,
            train_limit=args.images,
            test_limit=args.test_images,
        )


# ---------------------------------------------------------------------------------------------------------------------
# Communication
# ---------------------------------------------------------------------------------------------------------------------


class Cluster:
    """This worker's view of the group. Its methods other than the properties are collective: all workers call them."""

    ROOT = 0

    def __init__(self) -> None:
        hvd.init()

    @property
    def rank(self) -> int:
        return hvd.rank()

    @property
    def size(self) -> int:
        return hvd.size()

    @property
    def is_root(self) -> bool:
        return self.rank == self.ROOT

    def claim_device(self, wanted: str) -> torch.device:
        return workers.use_device(wanted, hvd.local_rank(), hvd.local_size())

    def share_state(self, net: nn.Module) -> None:
        """Overwrite every worker's parameters and buffers with those of the root."""
        hvd.broadcast_parameters(net.state_dict(), root_rank=self.ROOT)

    def distribute(self, optimizer: Optimizer, net: nn.Module) -> Optimizer:
        """Return an optimizer whose step applies the mean gradient of all workers. One buffer carries the gradients."""
        return hvd.DistributedOptimizer(
            optimizer, named_parameters=list(net.named_parameters()), op=hvd.Average, groups=1
        )

    def mean(self, value: Tensor, name: str) -> Tensor:
        return hvd.allreduce(value, name=name, op=hvd.Average)

    def total(self, value: Tensor, name: str) -> Tensor:
        return hvd.allreduce(value, name=name, op=hvd.Sum)

    def average_in_place(self, tensors: Sequence[Tensor], prefix: str) -> None:
        handles = [
            hvd.allreduce_async_(tensor, name=f"{prefix}.{position}", op=hvd.Average)
            for position, tensor in enumerate(tensors)
        ]
        for handle in handles:
            hvd.synchronize(handle)


# ---------------------------------------------------------------------------------------------------------------------
# Data
# ---------------------------------------------------------------------------------------------------------------------


class DataModule:
    """Both splits, and the part of each that belongs to this worker."""

    def __init__(self, config: TrainingConfig, cluster: Cluster, device: torch.device) -> None:
        self._config, self._cluster = config, cluster
        self.train, self.test = load(config.data_dir, device, config.train_limit, config.test_limit)

    @property
    def updates_per_epoch(self) -> int:
        return updates_per_epoch(len(self.train), self._config.batch_size, self._cluster.size)

    @property
    def images_per_epoch(self) -> int:
        """How many images all workers use together. The shards are equally long, so a few may be left out."""
        return len(self.train) // self._cluster.size * self._cluster.size

    def train_batches(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        # The order depends on seed and epoch only. All workers cut their shards from the same shuffle.
        order = shuffle(len(self.train), self._config.seed, epoch)
        mine = shard(order, self._cluster.rank, self._cluster.size)
        return batches(self.train, mine, self._config.batch_size, augment)

    def test_indices(self) -> Tensor:
        """This worker's part of the test images. Parts may differ by one, because counts are summed, not averaged."""
        return torch.arange(self._cluster.rank, len(self.test), self._cluster.size)


# ---------------------------------------------------------------------------------------------------------------------
# Model
# ---------------------------------------------------------------------------------------------------------------------


class RateSchedule(Protocol):
    """The factor of the base learning rate at an update, counted from 0."""

    def __call__(self, update: int) -> float: ...


class WarmupThenDecay:
    """Climb linearly from 1 to `size`, then fall linearly to 0 at the last update."""

    def __init__(self, total_updates: int, warmup_fraction: float, size: int) -> None:
        self.total_updates, self.size = total_updates, size
        # At least one update of warmup, and at least one update that is left for the decay.
        self.warmup_updates = min(max(1, round(warmup_fraction * total_updates)), total_updates - 1)

    def __call__(self, update: int) -> float:
        climb = warmup_factor(update, self.warmup_updates, self.size)
        return climb * decay_factor(update, self.warmup_updates, self.total_updates)


class ModelBundle:
    """The network with everything that is needed to update it."""

    def __init__(
        self, config: TrainingConfig, cluster: Cluster, device: torch.device, schedule: RateSchedule
    ) -> None:
        self._cluster = cluster
        self.net = ResNet9(width=config.width).to(device)
        cluster.share_state(self.net)  # The seeds differ, so the initial weights differ until here.
        self.criterion = nn.CrossEntropyLoss(label_smoothing=config.label_smoothing)
        # SGD has no momentum buffers before its first step, so there is no optimizer state to broadcast.
        sgd = SGD(
            self.net.parameters(),
            lr=config.base_lr,
            momentum=config.momentum,
            nesterov=True,
            weight_decay=config.weight_decay,
        )
        self.optimizer = cluster.distribute(sgd, self.net)
        self.scheduler = LambdaLR(self.optimizer, schedule)

    @property
    def rate(self) -> float:
        return self.scheduler.get_last_lr()[0]

    def synchronise_statistics(self) -> None:
        """Make the running statistics of batch norm equal on all workers. The weights are equal anyway."""
        self._cluster.average_in_place(training.running_statistics(self.net), prefix="batch_norm")


# ---------------------------------------------------------------------------------------------------------------------
# Logging
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EpochMetrics:
    """What one epoch gave. All numbers are those of all workers together."""

    epoch: int
    lr: float
    train_loss: float
    test_accuracy: float
    images_per_s: float
    seconds: float


class MetricsSink(Protocol):
    """Something that takes the metrics of an epoch."""

    def write(self, metrics: EpochMetrics) -> None: ...


class JsonLinesSink:
    """Append each epoch to a file, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    def write(self, metrics: EpochMetrics) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(metrics)) + "\n")


class LoggerSink:
    """Send each epoch to the log."""

    def __init__(self, epochs: int) -> None:
        self._epochs = epochs

    def write(self, metrics: EpochMetrics) -> None:
        logger.info(
            "epoch %d/%d: lr %.5f, loss %.3f, test accuracy %.2f%%, %.0f images/s, %.1f s",
            metrics.epoch,
            self._epochs,
            metrics.lr,
            metrics.train_loss,
            100 * metrics.test_accuracy,
            metrics.images_per_s,
            metrics.seconds,
        )


def configure_logging(cluster: Cluster) -> None:
    """Let the root report progress, and the other workers only what is wrong."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter(f"%(asctime)s %(levelname)s worker {cluster.rank}: %(message)s", "%H:%M:%S"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if cluster.is_root else logging.WARNING)
    logger.propagate = False


def make_sinks(config: TrainingConfig, cluster: Cluster) -> list[MetricsSink]:
    """Return the sinks of this worker. Only the root has any, so that one process writes the files."""
    if not cluster.is_root:
        return []
    return [JsonLinesSink(config.output_dir / "metrics.jsonl"), LoggerSink(config.epochs)]


# ---------------------------------------------------------------------------------------------------------------------
# Engine
# ---------------------------------------------------------------------------------------------------------------------


class Engine:
    """Runs the epochs: train on this worker's shard, evaluate together, report."""

    def __init__(
        self,
        config: TrainingConfig,
        cluster: Cluster,
        data: DataModule,
        model: ModelBundle,
        sinks: Sequence[MetricsSink],
    ) -> None:
        self.config, self.cluster, self.data, self.model, self.sinks = config, cluster, data, model, sinks

    def fit(self) -> None:
        for epoch in range(self.config.epochs):
            started = time.perf_counter()
            local_loss = self._train_epoch(epoch)
            loss = self.cluster.mean(local_loss, "train_loss").item()
            if not math.isfinite(loss):  # The mean is equal on all workers, so all of them leave here.
                logger.error("the training loss is %s after epoch %d: try a lower --lr", loss, epoch + 1)
                sys.exit(1)
            accuracy = self._evaluate()
            seconds = time.perf_counter() - started
            self._report(
                EpochMetrics(
                    epoch=epoch + 1,
                    lr=self.model.rate,
                    train_loss=loss,
                    test_accuracy=accuracy,
                    images_per_s=self.data.images_per_epoch / seconds,
                    seconds=seconds,
                )
            )

    def save(self) -> None:
        if self.cluster.is_root:
            training.save(self.model.net, self.config.output_dir)
            logger.info("wrote %s", self.config.output_dir / "model.pt")

    def _train_epoch(self, epoch: int) -> Tensor:
        """Return the mean loss over this worker's images."""
        self.model.net.train()
        loss_sum, count = 0.0, 0
        for images, labels in self.data.train_batches(epoch):
            loss = self._update(images, labels)
            loss_sum = loss_sum + loss * len(labels)
            count += len(labels)
        return loss_sum / count

    def _update(self, images: Tensor, labels: Tensor) -> Tensor:
        model = self.model
        with workers.autocast(images.device):
            logits = model.net(normalise(images)).float()
            loss = model.criterion(logits, labels)
        model.optimizer.zero_grad()
        loss.backward()
        workers.wait_for_gradients(model.optimizer)  # sleeps, and leaves the core to the others meanwhile
        model.optimizer.step()
        model.scheduler.step()
        return loss.detach()

    def _evaluate(self) -> float:
        """Return the accuracy on all test images, of which each worker looks at its part."""
        self.model.synchronise_statistics()
        correct = training.count_correct(self.model.net, self.data.test, self.data.test_indices())
        return self.cluster.total(correct, "test_correct").item() / len(self.data.test)

    def _report(self, metrics: EpochMetrics) -> None:
        for sink in self.sinks:
            sink.write(metrics)


def main() -> None:
    config = TrainingConfig.from_args(cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1))
    cluster = Cluster()
    configure_logging(cluster)
    device = cluster.claim_device(config.device)
    torch.manual_seed(config.seed + config.seed_stride * cluster.rank)  # Each worker distorts its images differently.

    data = DataModule(config, cluster, device)
    schedule = WarmupThenDecay(config.epochs * data.updates_per_epoch, config.warmup_fraction, cluster.size)
    model = ModelBundle(config, cluster, device, schedule)
    logger.info(
        "%d workers, %d updates an epoch, warmup over %d of %d updates",
        cluster.size,
        data.updates_per_epoch,
        schedule.warmup_updates,
        schedule.total_updates,
    )

    engine = Engine(config, cluster, data, model, make_sinks(config, cluster))
    engine.fit()
    engine.save()


if __name__ == "__main__":
    main()
