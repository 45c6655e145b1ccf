// SPDX-License-Identifier: Apache-2.0
#include "workflow/inputs/image.h"

#include "base/error.h"
#include "base/file.h"
#include "base/read_file.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace {

/// The most that one decoding allocates at once: compressed data may be for any size, whatever the
/// picture's header says.
struct DecoderMemory {
    size_t most = 0;
    size_t refused = 0; // the size of an allocation beyond it, or 0
    void* resized(void* block, size_t bytes) {
        if (bytes > most) {
            refused = bytes;
            return nullptr;
        }
        return std::realloc(block, bytes);
    }
};

DecoderMemory& decoder_memory() {
    thread_local DecoderMemory memory;
    return memory;
}

} // namespace

#define STBI_MALLOC(bytes) decoder_memory().resized(nullptr, bytes)
#define STBI_REALLOC(block, bytes) decoder_memory().resized(block, bytes)
#define STBI_FREE(block) std::free(block)
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace ingot {

namespace {

// A picture of floats: rows of pixels of channels.
struct Picture {
    int64_t height = 0;
    int64_t width = 0;
    int64_t channels = 0;
    std::vector<float> data;
    float at(int64_t y, int64_t x, int64_t c) const {
        return data[static_cast<size_t>((y * width + x) * channels + c)];
    }
};

constexpr uint64_t most_of_any_file = 64ULL << 20; // bytes of pixels
constexpr uint64_t most_times = 100;               // of the file's bytes, above that

/// Pictures that are far larger than their files are no photographs but attacks on memory.
void check_size(const std::string& path, uint64_t width, uint64_t height, uint64_t channels,
                uint64_t file_bytes) {
    require(width * height <= (1 << 28), ErrorCode::InvalidArgument, path, ": the picture has ",
            width, "x", height, " pixels, which is too large");
    uint64_t bytes = width * height * channels;
    require(bytes <= most_of_any_file || bytes / most_times <= file_bytes,
            ErrorCode::InvalidArgument, path, ": the picture has ", width, "x", height, " pixels, ",
            bytes, " bytes, which is ", bytes / file_bytes, " times the ", file_bytes,
            " bytes of its file; above ", most_of_any_file, " bytes at most ", most_times,
            " times are read: scale it down");
}

Picture decode(const std::string& path, int channels) {
    std::vector<std::byte> bytes = read_file(path, 256U << 20);
    int width = 0;
    int height = 0;
    int found = 0;
    const auto* raw = reinterpret_cast<const unsigned char*>(bytes.data());
    decoder_memory() = {1 << 20, 0};
    bool known =
        stbi_info_from_memory(raw, static_cast<int>(bytes.size()), &width, &height, &found) != 0;
    require(known, ErrorCode::InvalidArgument, path,
            ": not a PNG or JPEG picture, or one of more than 2^30 values");
    check_size(path, static_cast<uint64_t>(width), static_cast<uint64_t>(height),
               static_cast<uint64_t>(channels), bytes.size());
    // Channels of two bytes each, twice; whole blocks of JPEG; the compressed data in one piece.
    size_t pixels = (static_cast<size_t>(width) + 64) * (static_cast<size_t>(height) + 64);
    decoder_memory() = {std::max(16 * pixels, 2 * bytes.size()) + (1 << 16), 0};
    unsigned char* p = stbi_load_from_memory(raw, static_cast<int>(bytes.size()), &width, &height,
                                             &found, channels);
    require(p != nullptr || decoder_memory().refused == 0, ErrorCode::InvalidArgument, path,
            ": the compressed data of ", bytes.size(), " bytes is for more than the picture's ",
            width, "x", height, " pixels: it needs ", decoder_memory().refused, " bytes at once, ",
            decoder_memory().most, " are allowed; the file is damaged or hostile");
    require(p != nullptr, ErrorCode::InvalidArgument, path,
            ": cannot decode the picture: ", stbi_failure_reason());
    Picture out{height, width, channels, {}};
    out.data.assign(p, p + int64_t{width} * height * channels);
    stbi_image_free(p);
    return out;
}

// One output position of a resize: input pixels from `first`, with weights that sum to 1.
struct Tap {
    int64_t first = 0;
    std::vector<float> weights;
};

// Triangle filter whose support grows with the reduction (Pillow's BILINEAR).
std::vector<Tap> taps(int64_t in, int64_t out) {
    double scale = static_cast<double>(in) / static_cast<double>(out);
    double support = std::max(1.0, scale);
    std::vector<Tap> list;
    for (int64_t i = 0; i < out; ++i) {
        double center = (static_cast<double>(i) + 0.5) * scale;
        auto first = std::max<int64_t>(0, std::llround(center - support));
        auto last = std::min<int64_t>(in, std::llround(center + support));
        Tap t{first, {}};
        double sum = 0;
        for (int64_t k = first; k < last; ++k) {
            double w =
                std::max(0.0, 1.0 - std::fabs((static_cast<double>(k) - center + 0.5) / support));
            t.weights.push_back(static_cast<float>(w));
            sum += w;
        }
        for (float& w : t.weights) {
            w = static_cast<float>(static_cast<double>(w) / sum);
        }
        list.push_back(std::move(t));
    }
    return list;
}

Picture resized(const Picture& in, int64_t height, int64_t width) {
    if (in.height == height && in.width == width) {
        return in;
    }
    Picture rows{in.height, width, in.channels, {}};
    rows.data.resize(static_cast<size_t>(in.height * width * in.channels));
    std::vector<Tap> across = taps(in.width, width);
    for (int64_t y = 0; y < in.height; ++y) {
        for (int64_t x = 0; x < width; ++x) {
            const Tap& t = across[static_cast<size_t>(x)];
            for (int64_t c = 0; c < in.channels; ++c) {
                float sum = 0;
                for (size_t k = 0; k < t.weights.size(); ++k) {
                    sum += t.weights[k] * in.at(y, t.first + static_cast<int64_t>(k), c);
                }
                rows.data[static_cast<size_t>((y * width + x) * in.channels + c)] = std::round(sum);
            }
        }
    }
    Picture out{height, width, in.channels, {}};
    out.data.resize(static_cast<size_t>(height * width * in.channels));
    std::vector<Tap> down = taps(in.height, height);
    for (int64_t y = 0; y < height; ++y) {
        const Tap& t = down[static_cast<size_t>(y)];
        for (int64_t i = 0; i < width * in.channels; ++i) {
            float sum = 0;
            for (size_t k = 0; k < t.weights.size(); ++k) {
                sum += t.weights[k] *
                       rows.data[static_cast<size_t>(
                           (t.first + static_cast<int64_t>(k)) * width * in.channels + i)];
            }
            out.data[static_cast<size_t>(y * width * in.channels + i)] = std::round(sum);
        }
    }
    return out;
}

double per_channel(const std::vector<double>& v, int64_t c) {
    return v.size() == 1 ? v[0] : v[static_cast<size_t>(c)];
}

} // namespace

bool is_image_path(const std::string& path) {
    std::string lower = path;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    return lower.ends_with(".png") || lower.ends_with(".jpg") || lower.ends_with(".jpeg");
}

Tensor read_image(const std::string& path, DType dtype, const Shape& shape,
                  const ImageOptions& options) {
    size_t rank = shape.size();
    require((rank == 3 || rank == 4) && (rank == 3 || shape[0] == 1), ErrorCode::InvalidArgument,
            path,
            ": a picture needs an input of shape 1xCxHxW, 1xHxWxC or the same without the 1, got ",
            shape);
    auto few = [](int64_t c) { return c == 1 || c == 3 || c == 4; };
    bool first = options.layout.empty() ? few(shape[rank - 3]) : options.layout.ends_with("chw");
    require(options.layout.empty() || options.layout == "nchw" || options.layout == "nhwc" ||
                options.layout == "chw" || options.layout == "hwc",
            ErrorCode::InvalidArgument, "layout '", options.layout,
            "' is unknown, expected nchw, nhwc, chw or hwc");
    int64_t channels = first ? shape[rank - 3] : shape[rank - 1];
    int64_t height = first ? shape[rank - 2] : shape[rank - 3];
    int64_t width = first ? shape[rank - 1] : shape[rank - 2];
    require(few(channels) && height > 0 && width > 0, ErrorCode::InvalidArgument, path,
            ": an input of shape ", shape, " has ", channels,
            " channels, expected 1, 3 or 4; is --layout right?");
    for (const auto* v : {&options.mean, &options.std}) {
        require(v->size() == 1 || static_cast<int64_t>(v->size()) >= channels,
                ErrorCode::InvalidArgument, "--mean and --std need 1 or ", channels,
                " values, got ", v->size());
    }
    Picture p = resized(decode(path, static_cast<int>(channels)), height, width);
    Tensor t = Tensor::empty(dtype, shape);
    for (int64_t c = 0; c < channels; ++c) {
        for (int64_t y = 0; y < height; ++y) {
            for (int64_t x = 0; x < width; ++x) {
                double v = (static_cast<double>(p.at(y, x, c)) - per_channel(options.mean, c)) /
                           per_channel(options.std, c);
                t.set_f64(first ? (c * height + y) * width + x : (y * width + x) * channels + c, v);
            }
        }
    }
    return t;
}

} // namespace ingot
