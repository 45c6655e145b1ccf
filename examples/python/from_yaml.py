#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the engine that a configuration file describes, and loads it. Needs ingot[config]."""
import sys

from ingot.config import BuildConfig, InferenceConfig


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: from_yaml.py CONFIG.yaml")
    config = BuildConfig.from_yaml(sys.argv[1])
    config.build()
    print(InferenceConfig.from_yaml(sys.argv[1], section="inference").load())


if __name__ == "__main__":
    main()
