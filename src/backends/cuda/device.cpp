// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device.h"

#include "base/error.h"
#include "base/log.h"

#include <algorithm>

namespace ingot::cuda {

namespace {

constexpr size_t slab_bytes = 32 << 20;
constexpr size_t weight_alignment = 256;
constexpr size_t most_recordings = 16;
constexpr size_t most_error_words = 16384;

} // namespace

Weights::~Weights() {
    for (std::byte* s : slabs_) {
        gpu_.release(s);
    }
}

std::byte* Weights::reserve(size_t bytes) {
    bytes =
        (std::max<size_t>(bytes, 1) + weight_alignment - 1) / weight_alignment * weight_alignment;
    if (bytes > slab_left_) {
        size_t size = std::max(bytes, slab_bytes);
        std::byte* slab = gpu_.allocate(static_cast<int64_t>(size));
        slabs_.push_back(slab);
        if (bytes >= slab_bytes) {
            return slab; // of its own: the current slab goes on
        }
        slab_next_ = slab;
        slab_left_ = size;
    }
    std::byte* at = slab_next_;
    slab_next_ += bytes;
    slab_left_ -= bytes;
    return at;
}

std::byte* Weights::find(const Tensor& t, Stream& stream) {
    std::scoped_lock lock(mutex_);
    auto key = std::make_pair(t.bytes().data(), t.bytes().size());
    auto it = entries_.find(key);
    if (it != entries_.end()) {
        return it->second.address;
    }
    std::byte* address = reserve(t.bytes().size());
    stream.write(address, t.bytes().data(), t.bytes().size());
    stream.synchronize(); // other streams may use it from now on
    bytes_ += t.bytes().size();
    entries_.emplace(key, Entry{t, address});
    return address;
}

size_t Weights::bytes() const {
    std::scoped_lock lock(mutex_);
    return bytes_;
}

CudaDevice::CudaDevice(std::shared_ptr<CudaState> state)
    : state_(std::move(state)), stream_(state_->gpu.create_stream()) {}

CudaDevice::~CudaDevice() {
    if (error_words_ != nullptr) {
        release(error_words_);
    }
}

std::byte* CudaDevice::allocate(int64_t bytes) {
    return state_->gpu.allocate(std::max<int64_t>(bytes, 1));
}

void CudaDevice::release(std::byte* memory) noexcept {
    // Work that uses the memory may still be running.
    try {
        stream_->synchronize();
    } catch (const Error&) {
        return;
    }
    recorded_.clear();
    state_->gpu.release(memory);
}

const std::byte* CudaDevice::constant(const Tensor& t) {
    return state_->weights.find(t, *stream_);
}

void CudaDevice::copy(std::byte* to, const std::byte* from, size_t bytes) {
    stream_->copy(to, from, bytes);
}

void CudaDevice::fill(std::byte* to, int byte, size_t bytes) {
    stream_->fill(to, byte, bytes);
}

void CudaDevice::read(void* to, const std::byte* from, size_t bytes) {
    stream_->read(to, from, bytes);
}

void CudaDevice::write(std::byte* to, const void* from, size_t bytes) {
    stream_->write(to, from, bytes);
}

void CudaDevice::synchronize() {
    stream_->synchronize();
}

bool CudaDevice::replay(SegmentPlan& plan, const RunContext& context) {
    if (!state_->options.record_graphs || recording_now_ || !plan.recordable()) {
        return false;
    }
    auto end = static_cast<size_t>(plan.end_buffer());
    auto it = std::find_if(recorded_.begin(), recorded_.end(), [&](const Recorded& r) {
        return r.plan == plan.id && std::equal(r.buffers.begin(), r.buffers.end(), context.buffers,
                                               context.buffers + end);
    });
    if (it == recorded_.end()) {
        recorded_.push_front({plan.id, {context.buffers, context.buffers + end}, 1, nullptr});
        if (recorded_.size() > most_recordings) {
            recorded_.pop_back();
        }
        return false; // the first run is plain
    }
    recorded_.splice(recorded_.begin(), recorded_, it);
    Recorded& r = recorded_.front();
    if (r.recording == nullptr) {
        if (!stream_->begin_recording()) {
            return false;
        }
        recording_now_ = true;
        Status status;
        for (const StepEntry& e : plan.steps) {
            status = e.step->run(context);
            if (!status.ok()) {
                break;
            }
        }
        recording_now_ = false;
        r.recording = stream_->end_recording();
        if (!status.ok()) {
            log(LogLevel::Warning, "cuda: recording a graph failed: ", status.text());
            recorded_.pop_front();
            return false;
        }
    }
    stream_->launch(*r.recording);
    return true;
}

int CudaDevice::add_error_word(std::string what) {
    require(error_names_.size() < most_error_words, ErrorCode::Unsupported, "more than ",
            most_error_words, " steps that can fail at run time");
    if (error_words_ == nullptr) {
        error_words_ = allocate(static_cast<int64_t>(most_error_words * sizeof(uint32_t)));
        fill(error_words_, 0, most_error_words * sizeof(uint32_t));
    }
    error_names_.push_back(std::move(what));
    return static_cast<int>(error_names_.size()) - 1;
}

std::byte* CudaDevice::error_word(int index) {
    return error_words_ + static_cast<size_t>(index) * sizeof(uint32_t);
}

void CudaDevice::check_error_words() {
    if (error_names_.empty()) {
        return;
    }
    std::vector<uint32_t> words(error_names_.size());
    read(words.data(), error_words_, words.size() * sizeof(uint32_t));
    auto it = std::find_if(words.begin(), words.end(), [](uint32_t w) { return w != 0; });
    if (it == words.end()) {
        return;
    }
    fill(error_words_, 0, words.size() * sizeof(uint32_t));
    const std::string& where = error_names_[static_cast<size_t>(it - words.begin())];
    fail(ErrorCode::InvalidArgument, where,
         *it == static_cast<uint32_t>(kernels::ErrorWord::IndexOutOfRange)
             ? std::string(": an index is outside its axis")
             : str(": error ", *it));
}

} // namespace ingot::cuda
