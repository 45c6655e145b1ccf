# SPDX-License-Identifier: Apache-2.0
"""An error recorder that keeps all errors. Import it after package.find()."""
import tensorrt as trt


class Recorder(trt.IErrorRecorder):
    def __init__(self):
        super().__init__()
        self.errors = []

    def num_errors(self):
        return len(self.errors)

    def get_error_code(self, index):
        return self.errors[index][0]

    def get_error_desc(self, index):
        return self.errors[index][1]

    def has_overflowed(self):
        return False

    def clear(self):
        self.errors.clear()

    def report_error(self, code, desc):
        self.errors.append((code, desc))
        return False
