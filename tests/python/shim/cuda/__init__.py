# SPDX-License-Identifier: Apache-2.0
"""Stands in for the package cuda-python in tests: `from cuda import cudart`."""
