"""Notes which images the program uses."""

import torch


class BatchWatcher:
    """Collects the indices of the images that the program fetches, batch by batch."""

    def __init__(self):
        self.trained = Fetched()  # of the training images
        self.tested = Fetched()  # of the test images

    def note(self, name: str, indices: torch.Tensor) -> None:
        """Take the arguments of the course's audit event `cifar.batch`."""
        fetched = self.trained if name == "train" else self.tested
        batches = fetched.with_gradients if torch.is_grad_enabled() else fetched.without_gradients
        batches.append(indices.tolist())

    def any(self) -> bool:
        """Return whether any batch of training images was fetched since the last call of `take`."""
        return self.trained.any()

    def take(self) -> tuple[list[list[int]], int]:
        """Return the batches of training images that were trained on since the last call, and a number of test images.

        A program may fetch its batches where no gradients are recorded, and train on them all the same. So such batches
        are left out only where training images were fetched with gradients.
        """
        trained, tested = self.trained, self.tested
        self.trained, self.tested = Fetched(), Fetched()
        batches = trained.with_gradients or trained.without_gradients
        test_batches = tested.with_gradients if batches else tested.with_gradients + tested.without_gradients
        return batches, sum(map(len, test_batches))


class Fetched:
    """The batches of one part of the data, by whether PyTorch recorded gradients when they were fetched."""

    def __init__(self):
        self.with_gradients: list[list[int]] = []
        self.without_gradients: list[list[int]] = []

    def any(self) -> bool:
        return bool(self.with_gradients or self.without_gradients)
