"""Shows how far each layer of the small ResNet moves in one update, beside the length of its weights (lesson 06)."""

from collections.abc import Callable

from IPython.display import HTML, display
from torch import Tensor, nn
from torch.optim import Optimizer

from benchmarks.experiment.dataset import data
from benchmarks.instruments.simulated_workers import Recipe, train
from lessons.cells.display.figures import axes, show
from lessons.cells.display.tables import table

BATCH, UPDATES = 128, 10
Steps = dict[str, tuple[Tensor, Tensor]]  # for each layer: its weights before the last update, and the step subtracted


def last_step(make_optimizer: Callable[[nn.Module], Optimizer], seed: int, device: str) -> Steps:
    """Train for ten updates. Return the weights of each layer before the last update, and the step that it made.

    Layers whose parameters have one dimension, such as biases, are left out.
    """
    before: dict[str, Tensor] = {}

    def remember(net: nn.Module, optimizer: Optimizer, update: int) -> None:
        before.update({name: weight.detach().clone() for name, weight in net.named_parameters() if weight.dim() > 1})

    parts = data({"images": BATCH * UPDATES, "test_images": 100, "device": device})
    recipe = Recipe(optimizer=make_optimizer, batch_size=BATCH, epochs=1, before_step=remember)
    after = dict(train(recipe, parts, seed).net.named_parameters())
    return {name: (weight, weight - after[name].detach()) for name, weight in before.items()}


def share(weight: Tensor, step: Tensor) -> float:
    """The length of a step as a share of the length of the weights."""
    return (step.norm() / weight.norm()).item()


def show_steps(steps: Steps) -> None:
    """Show a table with the shape, the weights' length, the step's length, and the share of each layer."""
    rows = [
        (name, str(tuple(weight.shape)), f"{weight.norm():.2f}", f"{step.norm():.3f}", f"{share(weight, step):.2%}")
        for name, (weight, step) in steps.items()
    ]
    display(HTML(table(rows, ("layer", "shape", "‖weights‖", "‖step‖", "step / weights"))))


def show_shares(found: dict[str, Steps]) -> None:
    """Draw the share of each layer, as a dot for each optimizer. `found` has the steps of each optimizer by name."""
    figure, ax = axes("step / weights at update 10 (%)", "")
    spans = {}
    for name, steps in found.items():
        shares = [100 * share(weight, step) for weight, step in steps.values()]
        ax.plot(shares, range(len(shares)), linestyle="none", label=name, markersize=7)
        spans[name] = f"{max(shares) / min(shares):.1f}"
    layers = list(next(iter(found.values())))
    ax.set_yticks(range(len(layers)), layers)
    ax.legend()
    told = ", ".join(f"{name} {span}" for name, span in spans.items())
    show(
        figure,
        f"One dot for each layer and optimizer. Largest share divided by the smallest: {told}.",
        f"Each layer's step beside its weights. Largest share divided by the smallest: {told}.",
    )
