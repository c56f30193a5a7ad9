"""Python runs this file at the start of every worker that the grader launches (its folder is on PYTHONPATH).

It writes a line an update to `rank<r>.jsonl` in the folder GRADER_OBSERVE, and to `stack<r>.jsonl` where the worker
stands whenever it makes no update for a while. It only uses public hook points: audit events, PyTorch's hooks on
optimizers, modules and gradients, threads' frames, Horovod's timeline. What it writes comes from inside the learner's
process and explains; the grader believes it only where evidence from outside agrees.
"""

import atexit
import contextlib
import json
import os
import sys
import threading
import time
import weakref

STALL_SECONDS = 5  # without an update: then, and every so often, the worker writes down where it stands
MANY_GRADIENTS = 512  # are projected before there are more: a program may never call an optimizer
TIMELINE_UPDATES = (10, 13)  # Horovod's timeline is on between these: it costs time and space


def create(path: str):
    """Open a file that must not exist yet, unbuffered by line: readers may see each line at once."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
    return os.fdopen(descriptor, "w", buffering=1)


class Projections:
    """Eight random projections of a gradient, the same on every worker.

    They are linear: the workers' mean projection is the projection of their mean gradient. Eight numbers then tell
    whether a worker applied that mean, without keeping a gradient. A gradient's signs are the product of a row's and a
    column's: one product of a matrix and a vector, in one pass over the gradient as it lies in memory.
    """

    COUNT = 8

    def __init__(self):
        self.columns = {}  # number of a parameter, its gradient's strides -> signs along a row, the order of dimensions
        self.rows = {}  # numbers of parameters -> signs of all their rows, to which of the projections each row belongs

    def along(self, number: int, gradient):
        """A gradient `(R, ...)` of parameter `number` projected along its rows, without their signs yet: `(R,)`."""
        import torch

        gradient = gradient.detach().float()
        if gradient.dim() < 2:
            return gradient.reshape(-1)
        key = number, gradient.stride()
        if key not in self.columns:
            order = sorted(range(1, gradient.dim()), key=gradient.stride, reverse=True)
            signs = draw_signs(number, gradient.shape[1:]).permute([dimension - 1 for dimension in order])
            self.columns[key] = signs.flatten().to(gradient.device), [0, *order]
        signs, order = self.columns[key]
        return torch.mv(gradient.permute(order).flatten(1), signs)

    def __call__(self, along: dict):
        """The projections `(8,)` of several gradients together: number of a parameter -> what `along` made of it."""
        import torch

        values, key = torch.cat(list(along.values())), tuple(along)
        if key not in self.rows:
            signs = [draw_signs(~number, rows.shape) for number, rows in along.items()]
            places = [torch.arange(len(rows)) * self.COUNT // len(rows) for rows in along.values()]
            self.rows[key] = torch.cat(signs).to(values.device), torch.cat(places).to(values.device)
        signs, places = self.rows[key]
        return values.new_zeros(self.COUNT).index_add_(0, places, values * signs)


class Observer:
    """Follows one worker's updates and writes them down."""

    def __init__(self, folder: str, rank: int):
        self.folder, self.rank = folder, rank
        self.file = create(f"{folder}/rank{rank}.jsonl")
        self.stacks = create(f"{folder}/stack{rank}.jsonl")
        self.started = time.time()
        self.output = os.path.join(os.path.dirname(folder), "output", "")
        self.wrote: list[str] = []
        self.batches: dict[bool, list[list[int]]] = {True: [], False: []}  # by whether PyTorch recorded gradients
        self.losses, self.loss_modules = [], ()
        self.updates = 0
        self.depth = 0  # Horovod's optimizer calls step() of the optimizer that it wraps: one update, not two
        self.projections = Projections()
        self.seen = weakref.WeakSet()  # modules
        self.followed = {}  # id of a parameter -> its number, and a weak reference: is it still that parameter?
        self.count = 0
        self.gradients = []  # number of a parameter, its gradient: not projected yet
        self.local = {}  # number of a parameter -> its gradient projected along its rows
        self.applied = self.line = None
        self.root = None
        self.moved = time.monotonic()
        threading.Thread(target=self.watch, args=(threading.main_thread().ident,), daemon=True).start()

    def watch(self, main: int) -> None:
        """Write where the program stands whenever it makes no update for a while, innermost call first."""
        while True:
            time.sleep(STALL_SECONDS)
            if time.monotonic() - self.moved >= STALL_SECONDS and (frame := sys._current_frames().get(main)):
                calls = []
                while frame and len(calls) < 40:
                    calls.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name])
                    frame = frame.f_back
                self.stacks.write(json.dumps(calls) + "\n")

    def audit(self, event: str, args: tuple) -> None:
        """Note which training images a batch holds, and which files are opened for writing or renamed."""
        if event == "cifar.batch" and args[0] == "train":
            self.batches[sys.modules["torch"].is_grad_enabled()].append(args[1].tolist())
        elif event == "os.rename":
            self.note_write(args[1])
        elif event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR):
            self.note_write(args[0])

    def note_write(self, path: object) -> None:
        """Note a file in the output folder."""
        if isinstance(path, (str, bytes)) and os.path.abspath(os.fsdecode(path)).startswith(self.output):
            self.wrote.append(os.path.basename(os.fsdecode(path))[:80])

    def before_forward(self, module, args) -> None:
        """Follow every network that the program calls; the first one is the network whose buffers are hashed."""
        if module in self.seen:
            return
        self.seen.add(module)
        if isinstance(module, self.loss_modules):
            module.register_forward_hook(self.note_loss)
        if self.root is None and any(True for _ in module.parameters()):
            self.root = module
        self.follow(module.parameters())

    def note_loss(self, module, args, output) -> None:
        """Called after a loss module: note what it computed in training."""
        if output.requires_grad and output.numel() == 1:
            self.losses.append(output.detach())

    def follow(self, parameters) -> None:
        """From now on, note the gradients that this worker itself computes for these parameters."""
        for parameter in parameters:
            if parameter.requires_grad and self.number(parameter) is None:
                number, self.count = self.count, self.count + 1
                self.followed[id(parameter)] = number, weakref.ref(parameter)
                parameter.register_hook(lambda gradient, number=number: self.note_gradient(number, gradient))

    def number(self, parameter) -> int | None:
        """The number of a parameter that is followed; None of any other."""
        number, reference = self.followed.get(id(parameter), (None, lambda: parameter))
        return number if reference() is parameter else None

    def note_gradient(self, number: int, gradient) -> None:
        """Called before anything averages the gradient."""
        self.gradients.append((number, gradient))
        if len(self.gradients) >= MANY_GRADIENTS:
            self.project()

    def project(self) -> None:
        """Project the gradients noted since the last time; several backward passes add up, as they do in `.grad`.

        They are projected together because that takes a third of the time of projecting each between two layers'
        backward passes. Nothing changes them until then: PyTorch copies a gradient that somebody else holds.
        """
        for number, gradient in self.gradients:
            along = self.projections.along(number, gradient)
            self.local[number] = self.local[number] + along if number in self.local else along
        self.gradients.clear()

    def before_step(self, optimizer, args, kwargs) -> None:
        """Write the first line before the first update; note the gradient that is applied."""
        self.project()
        weights = parameters(optimizer)
        if self.depth == 0 and self.updates == 0 and self.trained():
            self.write(
                start=fingerprint(weights), buffers=self.buffers(), size=horovod_size(), device=str(weights[0].device),
                bytes=sum(weight.numel() * weight.element_size() for weight in weights),
                optimizer=type(optimizer).__name__,
            )  # fmt: skip
        self.depth += 1
        self.follow(weights)
        if self.depth == 1 and hasattr(optimizer, "skip_synchronize"):
            self.applied = None  # Horovod's optimizer averages first, and then calls step() again
            return
        graded = [(self.number(weight), weight.grad) for weight in weights if weight.grad is not None]
        along = self.projections.along
        self.applied = self.projected({number: along(number, grad) for number, grad in graded if number is not None})

    def trained(self) -> bool:
        """Whether images or gradients were seen since the last update: a step without only makes the optimizer's state.

        So does hvd.broadcast_optimizer_state on workers whose optimizer has no state yet.
        """
        return any(self.batches.values()) or bool(self.local or self.gradients)

    def after_step(self, optimizer, args, kwargs) -> None:
        """Write a line after each update, and once more if another optimizer takes part in it."""
        self.depth -= 1
        if self.depth:
            return
        if not self.trained():
            self.step_again(optimizer)
            return
        self.updates += 1
        self.stepped, self.computed = {id(weight): weight for weight in parameters(optimizer)}, self.local
        batches = self.batches[True] or self.batches[False]  # what is fetched to be measured alone is not trained on
        self.line = {
            "update": self.updates, "lr": [float(group["lr"]) for group in optimizer.param_groups],
            "images": [image for batch in batches for image in batch], "calls": len(batches),
            "weights": fingerprint(self.stepped.values()),
            "local": numbers(self.own()), "applied": numbers(self.applied),
            "loss": float(sum(self.losses)) / len(self.losses) if self.losses else None, "wrote": self.wrote,
        }  # fmt: skip
        self.write(**self.line)
        self.batches, self.losses, self.wrote, self.local = {True: [], False: []}, [], [], {}
        self.moved = time.monotonic()
        self.timeline()

    def step_again(self, optimizer) -> None:
        """Another optimizer's step for the same batch belongs to the same update; one without gradients is none."""
        if self.line is None or not self.applied_something():
            return
        self.stepped |= {id(weight): weight for weight in parameters(optimizer)}
        before = self.line["applied"] or [0.0] * Projections.COUNT
        applied = [one + other for one, other in zip(before, numbers(self.applied), strict=True)]
        weights, own = fingerprint(self.stepped.values()), numbers(self.own())
        self.line |= {"weights": weights, "applied": applied, "local": own}
        self.write(**self.line)

    def own(self):
        """What this worker itself computed for the parameters that the update changes: other networks do not matter."""
        stepped = (self.number(weight) for weight in self.stepped.values())
        return self.projected({number: self.computed[number] for number in stepped if number in self.computed})

    def projected(self, along: dict):
        """The projections `(8,)` of several gradients together; None of no gradient."""
        return self.projections(along) if along else None

    def applied_something(self) -> bool:
        """Whether the last step had a gradient that is not zero."""
        return self.applied is not None and bool(self.applied.any())

    def timeline(self) -> None:
        """Switch Horovod's timeline on for a few updates (all workers call; one writes)."""
        hvd = sys.modules.get("horovod.torch")
        with contextlib.suppress(Exception):  # the program may use the timeline itself
            if self.updates == TIMELINE_UPDATES[0] and horovod_size() > 1:
                hvd.start_timeline(f"{self.folder}/timeline.json", mark_cycles=False)
            if self.updates == TIMELINE_UPDATES[1] and horovod_size() > 1:
                hvd.stop_timeline()

    def buffers(self) -> int | None:
        """Hash of the network's buffers: running statistics differ from worker to worker until they are averaged."""
        return None if self.root is None else fingerprint(self.root.buffers())

    def end(self) -> None:
        """Write the last line when the program ends."""
        self.write(end=self.updates, buffers=self.buffers(), wrote=self.wrote)

    def write(self, **seen: object) -> None:
        """Write one line."""
        line = {"v": 2, "seconds": round(time.time() - self.started, 3), **seen}
        self.file.write(json.dumps(line) + "\n")


def draw_signs(seed: int, shape):
    """Random signs, -1 or 1, that depend on nothing else."""
    import torch

    return torch.randint(2, shape, generator=torch.Generator().manual_seed(seed)) * 2.0 - 1


def parameters(optimizer) -> list:
    """All parameters of an optimizer, in its order."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def fingerprint(tensors) -> int:
    """The course's hash of weights: see cifar.support.fingerprint."""
    from cifar.support.fingerprint import fingerprint

    return fingerprint(tensors)


def numbers(tensor) -> list[float] | None:
    """A tensor's numbers, to six digits."""
    return None if tensor is None else [float(f"{value:.6g}") for value in tensor.tolist()]


def horovod_size() -> int:
    """How many workers Horovod connects this one with; 1 if the program does not use it."""
    hvd = sys.modules.get("horovod.torch")
    return hvd.size() if hvd and hvd.is_initialized() else 1


def observe(folder: str, rank: int) -> None:
    """Follow this process's updates from now on."""
    observer = Observer(folder, rank)
    from torch.nn.modules.loss import _Loss
    from torch.nn.modules.module import register_module_forward_pre_hook
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    observer.loss_modules = _Loss
    sys.addaudithook(observer.audit)
    register_optimizer_step_pre_hook(observer.before_step)
    register_optimizer_step_post_hook(observer.after_step)
    register_module_forward_pre_hook(observer.before_forward)
    atexit.register(observer.end)


if "GRADER_OBSERVE" in os.environ and "HOROVOD_RANK" in os.environ:
    with contextlib.suppress(FileExistsError):  # a helper process of a worker that is observed already
        observe(os.environ["GRADER_OBSERVE"], int(os.environ["HOROVOD_RANK"]))
