"""Synchronous SGD on n workers:  horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E ...

Notation
    n, r        number of workers, and the rank of this one, 0 <= r < n
    w           the weights, the same vector on every worker at every k
    k, K        index of the update, and the total number of updates: k = 0, 1, ..., K - 1
    B           images per worker and update, so that one update uses n B images
    g_r         gradient of the mean loss over the B images of worker r
    g           (1/n) sum_r g_r, which is the gradient of the mean loss over all n B images, as the parts are equal
    eta(k)      learning rate of update k

Iteration (mu = 0.9, lambda = 5e-4, Nesterov's form)
    h_k     = g_k + lambda w_k
    v_{k+1} = mu v_k + h_k
    w_{k+1} = w_k - eta(k) (h_k + mu v_{k+1})

If w_0 and v_0 are equal on all workers, then by induction on k so are w_k and v_k, because g_k is.
"""

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD

from cifar import cli, training, workers
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)

hvd.init()
n, r = hvd.size(), hvd.rank()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + r)  # s_r = s + r: independent distortions. It also makes w_0 differ; see below.

train, test = load(args.data_dir, device, args.images, args.test_images)
N, M = len(train), len(test)

# --- the schedule -----------------------------------------------------------------------------------------------------

E, B = args.epochs, args.batch_size
K_epoch = updates_per_epoch(N, B, n)  # = ceil(floor(N / n) / B)
K = E * K_epoch
K_warm = max(1, K // 5)  # the first fifth
eta_0 = args.lr  # the rate for one worker


def eta(k: int) -> float:
    """Return the learning rate of update k, a piecewise linear function.

                 eta_0 (1 + (n - 1) k / K_warm)             for  0      <= k < K_warm      (from eta_0 to n eta_0)
        eta(k) = n eta_0 (K - k) / (K - K_warm)             for  K_warm <= k < K           (from n eta_0 to 0)
                 0                                          for  K      <= k

    It is continuous at K_warm, where both branches give n eta_0.
    """
    if k < K_warm:
        return eta_0 * (1 + (n - 1) * k / K_warm)
    if k < K:
        return n * eta_0 * (K - k) / (K - K_warm)
    return 0.0


# --- the initial value ------------------------------------------------------------------------------------------------

f = ResNet9(width=16).to(device)
hvd.broadcast_parameters(f.state_dict(), root_rank=0)  # w_0^(r) := w_0^(0) for all r. v_0 = 0 everywhere anyway.

optimizer = SGD(f.parameters(), lr=eta(0), momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(  # g = (1/n) sum_r g_r
    optimizer, named_parameters=f.named_parameters(), op=hvd.Average, groups=1
)
ell = CrossEntropyLoss(label_smoothing=0.1)

# --- the iteration ----------------------------------------------------------------------------------------------------

record = training.Record(args, write=(r == 0))
k = 0
for e in range(E):
    # pi is a permutation of {0, ..., N - 1} that depends on (seed, e) only, so it is the same on all workers.
    # S_r = {pi(r), pi(r + n), pi(r + 2n), ...}:  disjoint, and |S_r| = floor(N / n) for all r.
    pi = shuffle(N, args.seed, e)
    S_r = shard(pi, r, n)

    f.train()
    L = torch.zeros((), device=device)  # sum of the losses over S_r
    for x, y in batches(train, S_r, B, augment):
        for group in optimizer.param_groups:
            group["lr"] = eta(k)
        with workers.autocast(device):
            loss = ell(f(normalise(x)).float(), y)
        optimizer.zero_grad()
        loss.backward()  # g_r, and the sum over r begins
        workers.wait_for_gradients(optimizer)
        optimizer.step()  # w_{k+1} from w_k, v_k, g and eta(k)
        L += len(y) * loss.detach()
        k += 1

    # Running mean and variance of batch norm are no function of w: each worker has its own. Take (1/n) sum_r of each.
    for i, s in enumerate(training.running_statistics(f)):
        hvd.allreduce_(s, name=f"statistic.{i}", op=hvd.Average)

    # |S_r| is the same for all r, so the mean of the workers' means is the mean over the union of the S_r.
    mean_loss = hvd.allreduce(L / len(S_r), name="loss", op=hvd.Average)

    # T_r = {r, r + n, r + 2n, ...} below M. |T_r| may differ by 1, so sum the counts and divide by M afterwards.
    T_r = torch.arange(r, M, n)
    correct = hvd.allreduce(training.count_correct(f, test, T_r), name="correct", op=hvd.Sum)

    record.add(eta(k), mean_loss, correct / M, n * len(S_r))

if r == 0:
    training.save(f, args.output_dir)
