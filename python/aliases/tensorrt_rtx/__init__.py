# SPDX-License-Identifier: Apache-2.0
"""Ingot under the name that programs written for TensorRT for RTX import."""
from ingot import *  # noqa: F401, F403

__version__ = "1.6.0.0"
