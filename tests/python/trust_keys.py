# SPDX-License-Identifier: Apache-2.0
"""Keys of tests, made for nothing else: those of tests/trust_keys.h."""
import pytest

KEYS = [
    ("MC4CAQAwBQYDK2VwBCIEIKHlIqcNUhzxHaDQlHVCxDzt007vlsSTC2uS5+J6q2AS",
     "MCowBQYDK2VwAyEAV3EQPukLzi0d40OiluYd4MjqjCXHoG3Cepn1AFdbRtw="),
    ("MC4CAQAwBQYDK2VwBCIEIPjaD6kFMOICzyO+eTgg4fxODj6n50fS7anZx3wGnOdk",
     "MCowBQYDK2VwAyEAhYBs8pAOgcxCz2t3U6cJpVi+unAO6dMH2saOwYFo8NA="),
]


@pytest.fixture
def keys(tmp_path):
    """Files: key1, pub1, key2, pub2."""
    for number, (private, public) in enumerate(KEYS, 1):
        (tmp_path / f"key{number}").write_text(f"-----BEGIN PRIVATE KEY-----\n{private}\n-----END PRIVATE KEY-----\n")
        (tmp_path / f"pub{number}").write_text(f"-----BEGIN PUBLIC KEY-----\n{public}\n-----END PUBLIC KEY-----\n")
    return tmp_path
