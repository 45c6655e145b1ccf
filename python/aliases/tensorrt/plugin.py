# SPDX-License-Identifier: Apache-2.0
"""ingot.plugin under the name that programs written for TensorRT import."""
from ingot.plugin import *  # noqa: F401, F403
