"""Train ResNet-9 on CIFAR-10 with Horovod, data parallel.

Run with:  horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S
"""

import argparse
from pathlib import Path

import horovod.torch as hvd
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from cifar import training, workers
from cifar.data import Split, augment, load, normalise
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor


def parse_arguments():
    parser = argparse.ArgumentParser(description="CIFAR-10 with Horovod")
    parser.add_argument("--data-dir", type=Path, default=None, help="folder with the CIFAR-10 .bin files")
    parser.add_argument("--output-dir", type=Path, default=Path("runs/train"), help="folder for model and metrics")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=128, help="batch size per worker")
    parser.add_argument("--test-batch-size", type=int, default=500, help="test batch size per worker")
    parser.add_argument("--lr", type=float, default=0.1, help="base learning rate of one worker")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    parser.add_argument("--label-smoothing", type=float, default=0.1)
    parser.add_argument("--warmup-fraction", type=float, default=0.2, help="part of all updates used for the warmup")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--images", type=int, default=None, help="use only the first N training images")
    parser.add_argument("--test-images", type=int, default=None, help="use only the first N test images")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    return parser.parse_args()


class CifarDataset(Dataset):
    """Wrap a Split so that a DataLoader can read it."""

    def __init__(self, split: Split):
        self.split = split

    def __len__(self):
        return len(self.split)

    def __getitem__(self, index):
        images, labels = self.split.batch(torch.tensor([index]))
        return images[0], labels[0]

    def __getitems__(self, indices):
        # The DataLoader calls this one if it exists: a whole batch at once, much faster than image by image.
        return self.split.batch(torch.tensor(indices))


def keep_batch(batch):
    """Collate function: __getitems__ already returns (images, labels) as two tensors."""
    return batch


def create_train_loader(train_split, args):
    train_dataset = CifarDataset(train_split)
    # Horovod instead of torch.distributed, so we have to give rank and world size by hand.
    # drop_last=True: no image twice, and every rank has the same number of images.
    train_sampler = DistributedSampler(
        train_dataset,
        num_replicas=hvd.size(),
        rank=hvd.rank(),
        shuffle=True,
        seed=args.seed,
        drop_last=True,
    )
    # num_workers=0: the data is already in memory (and maybe on the GPU).
    train_loader = DataLoader(
        train_dataset,
        batch_size=args.batch_size,
        sampler=train_sampler,
        num_workers=0,
        collate_fn=keep_batch,
    )
    return train_loader, train_sampler


def create_test_loader(test_split, args):
    # No DistributedSampler here. It would repeat (or drop) images if the number is not divisible by the world size,
    # and then the accuracy would be a bit wrong. The parts may differ in length, because we sum counts.
    test_indices_of_this_rank = range(hvd.rank(), len(test_split), hvd.size())
    return DataLoader(
        CifarDataset(test_split),
        batch_size=args.test_batch_size,
        sampler=test_indices_of_this_rank,
        num_workers=0,
        collate_fn=keep_batch,
    )


def create_scheduler(optimizer, total_updates, args):
    warmup_updates = int(args.warmup_fraction * total_updates)

    def learning_rate_factor(update):
        # 1 -> world size during the warmup, then linearly down to 0
        return warmup_factor(update, warmup_updates, hvd.size()) * decay_factor(update, warmup_updates, total_updates)

    return optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=learning_rate_factor)


def train_one_epoch(model, train_loader, criterion, optimizer, scheduler, device):
    """Train for one epoch. Returns the mean loss over the images of ALL ranks."""
    model.train()
    running_loss = torch.zeros((), device=device)
    number_of_images = 0

    for images, labels in train_loader:
        images = normalise(augment(images))

        optimizer.zero_grad()
        with workers.autocast(device):
            outputs = model(images)
            loss = criterion(outputs.float(), labels)
        loss.backward()
        workers.wait_for_gradients(optimizer)  # sleep instead of busy waiting
        optimizer.step()
        scheduler.step()

        running_loss += loss.detach() * labels.size(0)
        number_of_images += labels.size(0)

    # Every rank has equally many images, so the mean of the means is right.
    return hvd.allreduce(running_loss / number_of_images, name="train_loss", op=hvd.Average)


def average_batch_norm_statistics(model):
    """running_mean and running_var are not parameters, so nobody has synchronized them until now."""
    for index, buffer in enumerate(training.running_statistics(model)):
        hvd.allreduce_(buffer, name=f"batch_norm_statistics.{index}", op=hvd.Average)


@torch.no_grad()
def evaluate(model, test_loader, number_of_test_images, device):
    """Returns the accuracy on the whole test set. Every rank tests its own part."""
    model.eval()
    correct_predictions = torch.zeros((), dtype=torch.int64, device=device)

    for images, labels in test_loader:
        with workers.autocast(device):
            outputs = model(normalise(images))
        correct_predictions += (outputs.argmax(dim=1) == labels).sum()

    correct_predictions = hvd.allreduce(correct_predictions, name="correct_predictions", op=hvd.Sum)
    return correct_predictions / number_of_test_images


def main():
    args = parse_arguments()

    # like dist.init_process_group()
    hvd.init()
    is_main_process = hvd.rank() == 0
    device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())

    # A different seed on each rank, so that the augmentation differs. The weights are broadcast below.
    torch.manual_seed(args.seed + hvd.rank())

    # Data
    train_split, test_split = load(args.data_dir, device, args.images, args.test_images)
    train_loader, train_sampler = create_train_loader(train_split, args)
    test_loader = create_test_loader(test_split, args)

    # Model (DDP would broadcast in its constructor, here we do it ourselves)
    model = ResNet9(width=16).to(device)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

    # Loss, optimizer, scheduler
    criterion = nn.CrossEntropyLoss(label_smoothing=args.label_smoothing)
    optimizer = optim.SGD(
        model.parameters(),
        lr=args.lr,
        momentum=args.momentum,
        nesterov=True,
        weight_decay=args.weight_decay,
    )
    # The optimizer is new and has no state yet, so there is no optimizer state to broadcast.
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    total_updates = args.epochs * len(train_loader)  # len(train_loader) is already that of one rank
    scheduler = create_scheduler(optimizer, total_updates, args)

    record = training.Record(args, write=is_main_process)

    for epoch in range(args.epochs):
        train_sampler.set_epoch(epoch)  # don't forget this, otherwise the same order every epoch

        train_loss = train_one_epoch(model, train_loader, criterion, optimizer, scheduler, device)
        average_batch_norm_statistics(model)
        test_accuracy = evaluate(model, test_loader, len(test_split), device)

        # All ranks call add(), only the main process writes.
        current_learning_rate = scheduler.get_last_lr()[0]
        record.add(current_learning_rate, train_loss, test_accuracy, len(train_sampler) * hvd.size())

    if is_main_process:
        training.save(model, args.output_dir)


if __name__ == "__main__":
    main()
