"""Where the noise of the gradient lets SGD end: the width of the cloud in which the weights move about a minimum."""

import math


def spread(rate: float, batch: float, curvature: float, noise: float) -> float:
    """Return the standard deviation of a weight about the minimum of a parabola, long after the start.

    `curvature` is the second derivative of the loss, and `noise` the variance of one image's gradient. An update
    multiplies the distance by 1 - rate * curvature, and adds rate times the noise of the batch's mean. So the variance
    keeps to v = (1 - rate * curvature)^2 v + rate^2 noise / batch. It is infinite if the weights diverge.
    """
    shrink = rate * curvature
    return math.inf if shrink >= 2 else math.sqrt(rate * noise / batch / (curvature * (2 - shrink)))
