# SPDX-License-Identifier: Apache-2.0
"""Ingot under the name that programs written for TensorRT import."""
from ingot import *  # noqa: F401, F403

__version__ = "11.1.0.0"
