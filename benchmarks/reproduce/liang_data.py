"""Data of Liang, Jordan & Taskar (2007): Gaussian clusters, handwritten digits and news articles."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.datasets.fetch import obtain
from permix.datasets.registry import Source
from permix.errors import FileFormatError
from permix.files import read_unpacked

MNIST = Source(
    key="mnist",
    title="MNIST, the 10,000 test images",
    size="1.6 MB",
    license="none is stated",
    citation="Y. LeCun, C. Cortes and C. J. C. Burges (1998). The MNIST database of handwritten digits.",
    homepage="the pages of Y. LeCun",
    manual="put the publisher's file, plain or with .gz, into the folder",
)
IMAGES = "t10k-images-idx3-ubyte"
IMAGE_MAGIC = 2051


class Clusters(NamedTuple):
    """Points with the clusters that made them, and further points from the same clusters."""

    data: np.ndarray
    labels: np.ndarray
    means: np.ndarray
    held_out: np.ndarray


def gaussian_clusters(
    n: int, n_features: int, n_clusters: int, seed: int, mean_variance: float = 2.0, n_held_out: int = 0
) -> Clusters:
    """Draw equally likely clusters of unit noise with means from N(0, 2).

    That the 2 is a variance, and so is the 100 of the prior assumed, is told by the axes of figure 3: the
    joint log probability of 10,000 points and one cluster is -945,000 then, where panel (a) begins below
    -900,000, and that of the 40 true clusters -612,300, between the -611,000 and -615,000 of panel (c). A
    standard deviation of 2 would start at -1,323,000; one of 100 for the prior would end at -616,000.
    """
    rng = np.random.default_rng(seed)
    means = rng.normal(0.0, math.sqrt(mean_variance), (n_clusters, n_features))
    labels = rng.integers(0, n_clusters, n)
    data = means[labels] + rng.standard_normal((n, n_features))
    others = rng.integers(0, n_clusters, n_held_out)
    held_out = means[others] + rng.standard_normal((n_held_out, n_features))
    return Clusters(data, labels, means, held_out)


def log_joint_of_truth(points: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Log of weight times density of every point under every true cluster."""
    squared = (points**2).sum(axis=1)[:, None] - 2.0 * points @ means.T + (means**2).sum(axis=1)
    n_clusters, n_features = means.shape
    result: np.ndarray = -0.5 * squared - 0.5 * n_features * math.log(2.0 * math.pi) - math.log(n_clusters)
    return result


def mnist_images() -> np.ndarray:
    """Return the 10,000 test images, one row of 784 pixels (0 to 255) each."""
    path = obtain(MNIST, IMAGES, download=False)[0]
    raw = read_unpacked(path)
    magic, n, height, width = np.frombuffer(raw[:16], dtype=">i4").tolist()
    pixels = np.frombuffer(raw[16:], dtype=np.uint8)
    if magic != IMAGE_MAGIC or pixels.size != n * height * width:
        raise FileFormatError(f"{path}: not a file of images in the idx format", path)
    return pixels.reshape(n, height * width).astype(np.float64)


def digits(n_features: int, n_images: int | None = None, seed: int = 0) -> np.ndarray:
    """Return principal components of standardized pixels, of all test images or of some at random.

    The paper has "10,000 handwritten digits", "normalized", reduced to 50 dimensions, with covariance 16 I.
    Each pixel divided by its standard deviation gives the log probability of its figure, -1.252e6; scaling
    all pixels, or each image, by one number gave -1.27e6 to -1.31e6 (0 to 1: one cluster, -1.167e6), in one
    run each.
    """
    pixels = mnist_images()
    if n_images is not None:
        pixels = pixels[np.sort(np.random.default_rng(seed).permutation(len(pixels))[:n_images])]
    scales = pixels.std(axis=0)
    used = scales > 0
    standardized = (pixels[:, used] - pixels[:, used].mean(axis=0)) / scales[used]
    values, vectors = np.linalg.eigh(standardized.T @ standardized)
    return np.asarray(standardized @ vectors[:, np.argsort(values)[::-1][:n_features]])
