# SPDX-License-Identifier: Apache-2.0
"""Ingot under the name that programs import which only load and run engines: there is no builder."""
from ingot._runtime import *  # noqa: F401, F403

__version__ = "11.1.0.0"
