// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include "base/error.h"
#include "engine/container.h"
#include "ir/binary.h"
#include "ops/op_table.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

namespace ingot {

namespace {

using Json = nlohmann::json;

Json to_json(const std::vector<Profile>& profiles) {
    Json list = Json::array();
    for (const Profile& p : profiles) {
        Json inputs = Json::array();
        for (const ShapeRange& r : p.inputs) {
            inputs.push_back({{"input", r.input}, {"min", r.min}, {"opt", r.opt}, {"max", r.max}});
        }
        list.push_back(std::move(inputs));
    }
    return list;
}

// Parses JSON that an engine carries; depth and size are bounded by its form.
template <class F>
auto parse_section(const Container& c, SectionKind kind, F&& f) {
    std::span<const std::byte> bytes = c.section(kind);
    require(bytes.size() <= (16U << 20), ErrorCode::InvalidEngine, "section ", kind, " has ",
            bytes.size(), " bytes, at most ", 16U << 20, " are allowed");
    auto too_deep = [](int depth, Json::parse_event_t, Json&) {
        require(depth <= 8, ErrorCode::InvalidEngine, "its text is nested too deep");
        return true;
    };
    try {
        const char* text = reinterpret_cast<const char*>(bytes.data());
        return f(Json::parse(text, text + bytes.size(), too_deep));
    } catch (const Json::exception& e) {
        fail(ErrorCode::InvalidEngine, "section ", kind,
             " does not hold what it should: ", e.what());
    }
}

std::vector<Profile> read_profiles(const Container& c) {
    return parse_section(c, SectionKind::Profiles, [](const Json& j) {
        std::vector<Profile> out;
        for (const Json& p : j) {
            Profile profile;
            for (const Json& r : p) {
                profile.inputs.push_back({r.at("input").get<std::string>(),
                                          r.at("min").get<Shape>(), r.at("opt").get<Shape>(),
                                          r.at("max").get<Shape>()});
            }
            out.push_back(std::move(profile));
        }
        return out;
    });
}

Graph read_engine_graph(const Container& c) {
    std::span<const std::byte> weights = c.section(SectionKind::Weights);
    ReadOptions options;
    options.find_op = find_op;
    options.fetch = [&](DType dtype, const Shape& shape, uint64_t offset) {
        int64_t count = count_of(shape);
        require(count <= INT64_MAX / 8, ErrorCode::InvalidEngine, "a weight ", dtype, shape,
                " is too large");
        auto bytes = static_cast<uint64_t>(byte_size(dtype, count));
        require(offset % 64 == 0 && offset <= weights.size() && bytes <= weights.size() - offset,
                ErrorCode::InvalidEngine, "a weight ", dtype, shape, " at ", offset, " with ",
                bytes, " bytes lies outside the ", weights.size(), " bytes of weights");
        return Tensor::wrap(dtype, shape, weights.subspan(offset, bytes), c.owner());
    };
    return read_graph(c.section(SectionKind::Graph), options);
}

// Hashes a stream in chunks of weight_chunk_bytes.
class ChunkHasher {
public:
    void add(std::span<const std::byte> data) {
        while (!data.empty()) {
            if (room_ == 0) {
                finish_chunk();
            }
            std::span<const std::byte> part = data.first(std::min<uint64_t>(room_, data.size()));
            stream_->add(part);
            room_ -= part.size();
            data = data.subspan(part.size());
        }
    }
    std::span<const std::byte> finish() {
        if (room_ != weight_chunk_bytes) {
            finish_chunk();
        }
        return std::as_bytes(std::span(hashes_));
    }

private:
    void finish_chunk() {
        Hash128 h = stream_->xxh3();
        hashes_.push_back(h.high);
        hashes_.push_back(h.low);
        stream_ = std::make_unique<HashStream>(false);
        room_ = weight_chunk_bytes;
    }
    std::unique_ptr<HashStream> stream_ = std::make_unique<HashStream>(false);
    uint64_t room_ = weight_chunk_bytes;
    std::vector<uint64_t> hashes_;
};

// Streams weights into the file in the order in which the graph mentions them.
class WeightWriter {
public:
    explicit WeightWriter(ContainerWriter& out) : out_(out) {}

    uint64_t place(const Tensor& t) {
        std::span<const std::byte> bytes = t.bytes();
        std::string key = str(bytes.size(), ":", xxh3_128(bytes));
        auto known = placed_.find(key);
        if (known != placed_.end()) {
            return known->second;
        }
        std::vector<std::byte> gap((64 - out_.position() % 64) % 64);
        write(gap);
        uint64_t offset = out_.position();
        write(bytes);
        placed_.emplace(std::move(key), offset);
        return offset;
    }
    std::span<const std::byte> chunk_hashes() { return hasher_.finish(); }

private:
    void write(std::span<const std::byte> data) {
        out_.write(data);
        hasher_.add(data);
    }
    ContainerWriter& out_;
    ChunkHasher hasher_;
    std::map<std::string, uint64_t> placed_;
};

void write_text(ContainerWriter& out, SectionKind kind, const Json& j) {
    std::string text = j.dump();
    out.begin(kind, true);
    out.write(std::as_bytes(std::span(text.data(), text.size())));
    out.end();
}

// The section of kernels: for each its key (32 hex digits), a little-endian u64 of its bytes, and
// these.
constexpr size_t kernel_key_bytes = 32;

void write_kernels(ContainerWriter& out, const KernelBinaries& kernels) {
    out.begin(SectionKind::Cubins, false);
    for (const auto& [key, binary] : kernels) {
        CHECK(key.size() == kernel_key_bytes, "a kernel's key has ", key.size(), " digits");
        uint64_t bytes = binary.size();
        out.write(std::as_bytes(std::span(key)));
        out.write(std::as_bytes(std::span(&bytes, 1)));
        out.write(std::as_bytes(std::span(binary)));
    }
    out.end();
}

std::shared_ptr<const KernelBinaries> read_kernels(const Container& c) {
    if (c.find(SectionKind::Cubins) == nullptr) {
        return nullptr;
    }
    std::span<const std::byte> rest = c.section(SectionKind::Cubins);
    auto kernels = std::make_shared<KernelBinaries>();
    while (!rest.empty()) {
        constexpr size_t head = kernel_key_bytes + sizeof(uint64_t);
        require(rest.size() >= head, ErrorCode::InvalidEngine, "section cubins: ", rest.size(),
                " bytes are left, a kernel begins with ", head);
        const char* text = reinterpret_cast<const char*>(rest.data());
        uint64_t bytes = 0;
        std::memcpy(&bytes, text + kernel_key_bytes, sizeof bytes);
        require(bytes <= rest.size() - head, ErrorCode::InvalidEngine,
                "section cubins: a kernel of ", bytes, " bytes, but ", rest.size() - head,
                " are left");
        kernels->emplace(std::string(text, kernel_key_bytes),
                         std::string(text + head, static_cast<size_t>(bytes)));
        rest = rest.subspan(head + static_cast<size_t>(bytes));
    }
    return kernels;
}

struct WeightSum : NullVisitor {
    using NullVisitor::field;
    uint64_t bytes = 0;
    void field(std::string_view, Tensor& v) override { bytes += v.bytes().size(); }
};

} // namespace

std::shared_ptr<const Engine> Engine::load(const std::string& path, bool verify_weights) {
    auto file = MappedFile::open(path);
    return with_place([&] { return path; },
                      [&] { return load(file->bytes(), file, verify_weights); });
}

std::shared_ptr<const Engine> Engine::load(std::span<const std::byte> bytes,
                                           std::shared_ptr<const void> owner, bool verify_weights) {
    Container c(bytes, std::move(owner));
    for (uint64_t i = 0; verify_weights && i < c.weight_chunks(); ++i) {
        c.verify_weight_chunk(i);
    }
    std::shared_ptr<Engine> e(new Engine);
    e->graph_ = std::make_shared<const Graph>(read_engine_graph(c));
    e->profiles_ = read_profiles(c);
    try {
        for (const Profile& p : e->profiles_) {
            check_profile(*e->graph_, p);
        }
    } catch (const Error& error) {
        fail(ErrorCode::InvalidEngine, error.message());
    }
    e->metadata_ =
        parse_section(c, SectionKind::Metadata, [](const Json& j) { return j.get<Properties>(); });
    e->kernels_ = read_kernels(c);
    return e;
}

std::shared_ptr<const Engine> Engine::with_kernels(KernelBinaries kernels) const {
    std::shared_ptr<Engine> e(new Engine(*this));
    e->kernels_ = std::make_shared<const KernelBinaries>(std::move(kernels));
    return e;
}

std::shared_ptr<const Engine> Engine::create(Graph graph, std::vector<Profile> profiles,
                                             Properties metadata) {
    for (const Profile& p : profiles) {
        check_profile(graph, p);
    }
    std::shared_ptr<Engine> e(new Engine);
    e->graph_ = std::make_shared<const Graph>(std::move(graph));
    e->profiles_ = std::move(profiles);
    e->metadata_ = std::move(metadata);
    return e;
}

uint64_t Engine::weight_bytes() const {
    WeightSum sum;
    for (const Node& n : graph_->nodes()) {
        if (n.is(constant_def)) {
            visit_attrs(*n.def, n.attrs.get(), sum);
        }
    }
    return sum.bytes;
}

namespace {

uint32_t section_count(const KernelBinaries& kernels) {
    return kernels.empty() ? 5 : 6;
}

void write_sections(ContainerWriter& out, const Graph& graph, const std::vector<Profile>& profiles,
                    const Properties& metadata, const KernelBinaries& kernels) {
    for (const Profile& p : profiles) {
        check_profile(graph, p);
    }
    out.begin(SectionKind::Weights, true, weight_alignment);
    WeightWriter weights(out);
    std::vector<std::byte> body =
        write_graph(graph, [&](const Tensor& t) { return weights.place(t); });
    out.end();
    std::span<const std::byte> hashes = weights.chunk_hashes();
    out.set_xxh3(SectionKind::Weights, xxh3_128(hashes));
    out.begin(SectionKind::WeightHashes, true);
    out.write(hashes);
    out.end();
    out.begin(SectionKind::Graph, true);
    out.write(body);
    out.end();
    write_text(out, SectionKind::Profiles, to_json(profiles));
    write_text(out, SectionKind::Metadata, Json(metadata));
    if (!kernels.empty()) {
        write_kernels(out, kernels);
    }
    out.commit();
}

} // namespace

void write_engine(const std::string& path, const Graph& graph, const std::vector<Profile>& profiles,
                  const Properties& metadata, const KernelBinaries& kernels) {
    ContainerWriter out(path, section_count(kernels));
    write_sections(out, graph, profiles, metadata, kernels);
}

AlignedBytes engine_bytes(const Engine& engine) {
    const KernelBinaries none;
    const KernelBinaries& kernels = engine.kernels() != nullptr ? *engine.kernels() : none;
    constexpr uint64_t around_weights = 1ULL << 20;
    AlignedBytes out;
    out.reserve(engine.weight_bytes() + around_weights);
    ContainerWriter writer(out, section_count(kernels));
    write_sections(writer, engine.graph(), engine.profiles(), engine.metadata(), kernels);
    return out;
}

} // namespace ingot
