"""Notes which training images the program uses."""

import torch


class BatchWatcher:
    """Collects the indices of the training images that the program fetches, batch by batch."""

    def __init__(self):
        self.training: list[list[int]] = []  # fetched while PyTorch recorded gradients
        self.measured: list[list[int]] = []  # fetched while it did not

    def note(self, name: str, indices: torch.Tensor) -> None:
        """Takes the arguments of the course's audit event `cifar.batch`."""
        if name == "train":
            batches = self.training if torch.is_grad_enabled() else self.measured
            batches.append(indices.tolist())

    def any(self) -> bool:
        """Whether any batch was fetched since the last call of `take`."""
        return bool(self.training or self.measured)

    def take(self) -> list[list[int]]:
        """The batches since the last call that were trained on.

        A program may fetch its batches where no gradients are recorded, and train on them all the same. So the others
        are left out only where some were fetched with gradients.
        """
        batches = self.training or self.measured
        self.training, self.measured = [], []
        return batches
