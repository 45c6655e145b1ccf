// SPDX-License-Identifier: Apache-2.0
// The input side of a convolution over up to three spatial axes (leading ones of size 1 where there
// are fewer). A depth index is (kernel position, channel of the group), the channel fastest.
struct Window {
    i64 in[3], out[3], kernel[3], stride[3], dilation[3], low[3];
    i64 channels;                // of a group
    i64 step_n, step[3], step_c; // strides of x
};

/// The window origin of a result position. `axes`: the number of trailing axes that matter.
struct Origin {
    i64 image;
    i32 at[3] = {0, 0, 0};
    DEVICE Origin(const Window& w, u32 row, int axes = 3) {
        u32 q = row;
#pragma unroll
        for (int s = 2; s >= 3 - axes; s--) {
            u32 next = q / (u32)w.out[s], i = q - next * (u32)w.out[s];
            at[s] = (i32)i * (i32)w.stride[s] - (i32)w.low[s];
            q = next;
        }
        image = (i64)q * w.step_n;
    }
};

/// A kernel position and channel.
struct Tap {
    i32 c, at[3] = {0, 0, 0};
    DEVICE Tap(const Window& w, u32 k, int axes = 3) {
        u32 q = k / (u32)w.channels;
        c = (i32)(k - q * (u32)w.channels);
#pragma unroll
        for (int s = 2; s >= 3 - axes; s--) {
            u32 next = q / (u32)w.kernel[s];
            at[s] = (i32)(q - next * (u32)w.kernel[s]);
            q = next;
        }
    }
};
