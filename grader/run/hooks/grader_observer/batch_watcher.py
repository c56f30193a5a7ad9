"""Notes which images the program uses."""

import torch

from .helper_fetches import HelperFetches


class BatchWatcher:
    """Collects the indices of the images that the program and its helpers fetch, batch by batch."""

    def __init__(self, helpers: HelperFetches):
        self.helpers = helpers
        self.trained = Fetched()  # of the training images
        self.tested = Fetched()  # of the test images

    def note(self, name: str, indices: torch.Tensor) -> None:
        """Take the arguments of the course's audit event `cifar.batch`. It may occur in a helper process."""
        add = self.helpers.add if self.helpers.in_helper() else self._add
        add(name, torch.is_grad_enabled(), indices.reshape(-1).tolist())  # a single image may have no dimension

    def _add(self, name: str, with_gradients: bool, indices: list[int]) -> None:
        if not indices:
            return
        fetched = self.trained if name == "train" else self.tested
        (fetched.with_gradients if with_gradients else fetched.without_gradients).append(indices)

    def any(self) -> bool:
        """Return whether any batch of training images was fetched since the last call of `take`."""
        for fetch in self.helpers.take():
            self._add(fetch.name, fetch.with_gradients, fetch.indices)
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
