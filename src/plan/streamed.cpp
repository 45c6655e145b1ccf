// SPDX-License-Identifier: Apache-2.0
// Constants that a device does not keep: each step that reads one needs an upload before. Where the
// device has room, the upload runs concurrently with earlier steps, from the reader of the previous
// upload on: so at most two steps hold constants at once.
#include "base/error.h"
#include "plan/device.h"
#include "plan/planner.h"

#include <algorithm>
#include <utility>

namespace ingot::plan {

namespace {

template <class F>
Status enqueued(const RunContext& c, const F& f) noexcept {
    try {
        f();
    } catch (const std::exception& e) {
        c.error.set("%s", e.what());
        return {ErrorCode::Device, "weights could not be copied to the device"};
    }
    return {};
}

/// Copies a constant to the buffer that a later step reads.
class UploadStep : public Step {
public:
    UploadStep(StoredConstant constant, int buffer, bool beside)
        : constant_(std::move(constant)), buffer_(buffer), beside_(beside) {}
    Status run(const RunContext& c) noexcept override {
        return enqueued(
            c, [&] { c.device.parts().uploads->upload(c.buffers[buffer_], constant_, beside_); });
    }
    std::string implementation() const override { return beside_ ? "upload beside" : "upload"; }
    bool recordable() const override { return true; }

private:
    StoredConstant constant_;
    int buffer_;
    bool beside_;
};

/// Makes the next step wait for the concurrent uploads.
class AwaitStep : public Step {
public:
    Status run(const RunContext& c) noexcept override {
        return enqueued(c, [&] { c.device.parts().uploads->end_uploads(); });
    }
    std::string implementation() const override { return "wait"; }
    bool recordable() const override { return true; }
};

} // namespace

Operand Planner::streamed(const Operand& o) {
    const Storage* s = storage_of(o.buffer);
    auto earlier = plan_->not_kept.find(o.buffer);
    bool here = s != nullptr && s->kind == Storage::Kind::Constant && !device_.keeps(s->constant);
    if (!here && earlier == plan_->not_kept.end()) {
        return o;
    }
    StoredConstant constant = here ? s->constant : earlier->second;
    Upload upload;
    upload.step = plan_->steps.size();
    size_t first = upload.step; // of the uploads for the same step
    int64_t bytes = static_cast<int64_t>(constant.size());
    int64_t on_their_way = bytes;
    size_t before = uploads_.size();
    while (before > 0 && uploads_[before - 1].step + 1 == first) {
        const Upload& u = uploads_[--before];
        first = u.step;
        on_their_way += u.beside ? plan_->storages[u.storage].bytes : 0;
    }
    // the reader of the previous upload
    upload.anchor = before == 0 ? 0 : uploads_[before - 1].step + 1;
    upload.beside = upload.anchor < first && on_their_way <= device_.parts().uploads->room();
    Storage place;
    place.bytes = bytes;
    Operand to = o;
    to.buffer = new_storage(std::move(place));
    upload.storage = plan_->storages.size() - 1;
    if (upload.beside) {
        plan_->storages.back().first = static_cast<int64_t>(upload.anchor);
    }
    StepEntry entry;
    entry.step = std::make_unique<UploadStep>(constant, to.buffer, upload.beside);
    entry.kernel = "weights";
    entry.out = {{constant.dtype(), to.buffer, dense(constant.shape())}};
    plan_->steps.push_back(std::move(entry));
    uploads_.push_back(upload);
    return to;
}

/// Moves concurrent uploads to their start, and inserts a wait before their readers.
void Planner::place_uploads() {
    std::vector<Block> blocks;
    std::vector<char> is_upload(plan_->steps.size() + 1, 0);
    std::vector<const Upload*> beside;
    for (const Upload& u : uploads_) {
        const Storage& s = plan_->storages[u.storage];
        blocks.push_back({s.bytes, s.first, s.last});
        is_upload[u.step] = 1;
        if (u.beside) {
            beside.push_back(&u);
        }
    }
    plan_->streamed_bytes = arena_lower_bound(blocks, 1);
    if (beside.empty()) {
        return;
    }
    std::vector<StepEntry> in_order = std::exchange(plan_->steps, {});
    std::vector<StepEntry>& steps = plan_->steps;
    size_t begun = 0; // concurrent uploads started
    bool awaited = true;
    for (size_t i = 0; i < in_order.size(); ++i) {
        if (is_upload[i] == 0 && !awaited && i > 0 && is_upload[i - 1] != 0) {
            StepEntry wait;
            wait.step = std::make_unique<AwaitStep>();
            wait.kernel = "weights";
            steps.push_back(std::move(wait));
            moved_.push_back(static_cast<int64_t>(i));
            awaited = true;
        }
        for (; begun < beside.size() && beside[begun]->anchor == i; ++begun) {
            steps.push_back(std::move(in_order[beside[begun]->step]));
            moved_.push_back(static_cast<int64_t>(i));
            awaited = false;
        }
        if (in_order[i].step != nullptr) {
            steps.push_back(std::move(in_order[i]));
            moved_.push_back(static_cast<int64_t>(i));
        }
    }
}

/// Renumbers lifetimes for the final list of steps; a value that lives to the end gets the number
/// of steps.
void Planner::number_lifetimes() {
    std::vector<int64_t> places; // old position -> position among the remaining steps
    for (size_t i = 0; i < plan_->steps.size(); ++i) {
        if (plan_->steps[i].step != nullptr) {
            places.push_back(moved_.empty() ? static_cast<int64_t>(i) : moved_[i]);
        }
    }
    for (Storage& s : plan_->storages) {
        auto first = std::lower_bound(places.begin(), places.end(), s.first);
        auto last = std::upper_bound(places.begin(), places.end(), s.last);
        bool ends = s.last < planned_steps_;
        s.first = first - places.begin();
        s.last = ends ? last - places.begin() - 1 : static_cast<int64_t>(places.size());
    }
}

} // namespace ingot::plan
