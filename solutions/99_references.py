# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 99 References
#
# Every source of the course, once. Where a notebook names a paper by author and year, it is this one. The claims that
# the notebooks examine come from five sources, called S0 to S4:
#
# | | source | what we took from it |
# | --- | --- | --- |
# | S0 | TensorFlow's tutorial of training CIFAR-10 on several GPUs, and a public question about it: two GPUs end up with a lower accuracy than one | claims about averages of gradients, epochs and steps, and what the printed loss is |
# | S1 | A public discussion of why anybody trains on several GPUs | claims about large batches, memory, throughput and scaling |
# | S2 | The outline of a vendor's course, "Fundamentals of Deep Learning for Multi-GPUs" | the assignment: from one GPU to four with Horovod |
# | S3 | A design discussion of data-parallel SGD for Keras | claims about parameter servers, normalising the loss, momentum and shuffling |
# | S4 | *4.Convergence* of OpenHackathons' GPU Bootcamp, github.com/openhackathons-org/gpubootcamp, folder ai/Distributed_Deep_Learning (CC BY 4.0), with its scripts in source_code/N4 | the order of techniques, and the table that notebook 07 rebuilds |
#
# ## Gradient descent, noise, and batch sizes
#
# - Bottou, Curtis, Nocedal: *Optimization methods for large-scale machine learning*, 2018. arXiv:1606.04838
# - Dauphin and others: *Identifying and attacking the saddle point problem in high-dimensional non-convex
#   optimization*, 2014. arXiv:1406.2572
# - Ge, Huang, Jin, Yuan: *Escaping from saddle points: online stochastic gradient for tensor decomposition*, 2015.
#   arXiv:1503.02101
# - Mandt, Hoffman, Blei: *Stochastic gradient descent as approximate Bayesian inference*, 2017. arXiv:1704.04289
# - McCandlish, Kaplan, Amodei, and others: *An empirical model of large-batch training*, 2018. arXiv:1812.06162
# - Shallue and others: *Measuring the effects of data parallelism on neural network training*, 2018. arXiv:1811.03600
# - Zhang and others: *Which algorithmic choices matter at which batch sizes? Insights from a noisy quadratic model*,
#   2019. arXiv:1907.04164
# - Zhang and others: *How does critical batch size scale in pre-training?*, 2024. arXiv:2410.21676
# - Merrill and others: *Critical batch size revisited: a simple empirical approach to large-batch language model
#   training*, 2025. arXiv:2505.23971
# - Du, Jin, Lee, Jordan, Poczos, Singh: *Gradient descent can take exponential time to escape saddle points*, 2017.
#   arXiv:1705.10412
# - Smith, Kindermans, Ying, Le: *Don't decay the learning rate, increase the batch size*, 2017. arXiv:1711.00489
# - Keskar and others: *On large-batch training for deep learning: generalization gap and sharp minima*, 2016.
#   arXiv:1609.04836
# - Dinh, Pascanu, Bengio, Bengio: *Sharp minima can generalize for deep nets*, 2017. arXiv:1703.04933
# - Cohen, Kaur, Li, Kolter, Talwalkar: *Gradient descent on neural networks typically occurs at the edge of stability*,
#   2021. arXiv:2103.00065
# - Hoffer, Hubara, Soudry: *Train longer, generalize better: closing the generalization gap in large batch training of
#   neural networks*, 2017. arXiv:1705.08741
# - Pearlmutter: *Fast exact multiplication by the Hessian*, Neural Computation 6(1), 1994
#
# ## Data parallelism
#
# - Patarasuk, Yuan: *Bandwidth optimal all-reduce algorithms for clusters of workstations*, Journal of Parallel and
#   Distributed Computing 69(2), 2009
# - Hockney: *The communication challenge for MPP: Intel Paragon and Meiko CS-2*, Parallel Computing 20(3), 1994
# - Dean and others: *Large scale distributed deep networks*, NIPS 2012
# - Li and others: *Scaling distributed machine learning with the parameter server*, OSDI 2014
# - Chen, Pan, Monga, Bengio, Jozefowicz: *Revisiting distributed synchronous SGD*, 2016. arXiv:1604.00981
# - Zhang, Choromanska, LeCun: *Deep learning with elastic averaging SGD*, 2015. arXiv:1412.6651
# - Sergeev, Del Balso: *Horovod: fast and easy distributed deep learning in TensorFlow*, 2018. arXiv:1802.05799
# - Li and others: *PyTorch distributed: experiences on accelerating data parallel training*, 2020. arXiv:2006.15704
# - Krizhevsky: *One weird trick for parallelizing convolutional neural networks*, 2014. arXiv:1404.5997
# - Huang and others: *GPipe: efficient training of giant neural networks using pipeline parallelism*, 2018.
#   arXiv:1811.06965
# - Shoeybi and others: *Megatron-LM: training multi-billion parameter language models using model parallelism*, 2019.
#   arXiv:1909.08053
# - Rajbhandari, Rasley, Ruwase, He: *ZeRO: memory optimizations toward training trillion parameter models*, 2019.
#   arXiv:1910.02054
# - Zhao and others: *PyTorch FSDP: experiences on scaling fully sharded data parallel*, 2023. arXiv:2304.11277
# - Vogels, Karimireddy, Jaggi: *PowerSGD: practical low-rank gradient compression for distributed optimization*, 2019.
#   arXiv:1905.13727
# - Stich, Cordonnier, Jaggi: *Sparsified SGD with memory* (top-k with error feedback), 2018. arXiv:1809.07599
# - Douillard and others: *DiLoCo: distributed low-communication training of language models*, 2023. arXiv:2311.08105
# - Grattafiori and others: *The Llama 3 herd of models* (section 3.3.4 counts interruptions), 2024. arXiv:2407.21783
#
# ## Techniques for large batches
#
# - Goyal and others: *Accurate, large minibatch SGD: training ImageNet in 1 hour*, 2017. arXiv:1706.02677
# - Ioffe, Szegedy: *Batch normalization: accelerating deep network training by reducing internal covariate shift*,
#   2015. arXiv:1502.03167
# - Bengio: *Practical recommendations for gradient-based training of deep architectures* (section 3.3: a search), 2012.
#   arXiv:1206.5533
# - Pascanu, Mikolov, Bengio: *On the difficulty of training recurrent neural networks* (clipping), 2012.
#   arXiv:1211.5063
# - Kingma, Ba: *Adam: a method for stochastic optimization*, 2014. arXiv:1412.6980
# - Malladi, Lyu, Panigrahi, Arora: *On the SDEs and scaling rules for adaptive gradient algorithms*, 2022.
#   arXiv:2205.10287
# - You, Gitman, Ginsburg: *Large batch training of convolutional networks* (LARS), 2017. arXiv:1708.03888
# - You and others: *Large batch optimization for deep learning: training BERT in 76 minutes* (LAMB), 2019.
#   arXiv:1904.00962
# - Kalra, Barkeshli: *Why warmup the learning rate? Underlying mechanisms and improvements*, 2024. arXiv:2406.09405
# - Nado and others: *A large batch optimizer reality check: traditional, generic optimizers suffice across batch
#   sizes*, 2021. arXiv:2102.06356
# - Jia and others: *Highly scalable deep learning training system with mixed-precision: training ImageNet in four
#   minutes*, 2018. arXiv:1807.11205
# - You, Zhang, Hsieh, Demmel, Keutzer: *ImageNet training in minutes*, 2017. arXiv:1709.05011
# - Akiba, Suzuki, Fukuda: *Extremely large minibatch SGD: training ResNet-50 on ImageNet in 15 minutes*, 2017.
#   arXiv:1711.04325
# - Ying and others: *Image classification at supercomputer scale*, 2018. arXiv:1811.06992
# - Yamazaki and others: *Yet another accelerated SGD: ResNet-50 training on ImageNet in 74.7 seconds*, 2019.
#   arXiv:1903.12650
#
# ## Networks and data
#
# (Page, Tan and Le, and Jordan stand behind the networks of the assignment and of `cifar_fast.py`, the script for those
# who cannot wait.)
#
# - Krizhevsky: *Learning multiple layers of features from tiny images* (CIFAR-10), technical report, University of
#   Toronto, 2009
# - He, Zhang, Ren, Sun: *Deep residual learning for image recognition*, 2015. arXiv:1512.03385
# - Page: *How to train your ResNet*, a series of articles, 2018
# - Tan, Le: *EfficientNetV2: smaller models and faster training* (small images first), 2021. arXiv:2104.00298
# - Jordan: *94% on CIFAR-10 in 3.29 seconds on a single GPU*, 2024. arXiv:2404.00498
