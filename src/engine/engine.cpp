// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include "base/error.h"
#include "base/json.h"
#include "base/page_guard.h"
#include "base/trace.h"
#include "engine/container.h"
#include "engine/kernel_section.h"
#include "engine/weight_check.h"
#include "ir/binary.h"
#include "ir/rewrite.h"
#include "ops/op_table.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

namespace ingot {

namespace {

Json to_json(const std::vector<Profile>& profiles) {
    Json list = Json::list();
    for (const Profile& p : profiles) {
        Json& inputs = list.add(Json::list());
        for (const ShapeRange& r : p.inputs) {
            Json& input = inputs.add();
            input.set("input", r.input);
            input.set("max", r.max);
            input.set("min", r.min);
            input.set("opt", r.opt);
        }
    }
    return list;
}

// Reads JSON that an engine carries; its size and depth are bounded.
template <class F>
auto parse_section(const Container& c, SectionKind kind, F&& f) {
    std::span<const std::byte> bytes = c.section(kind);
    require(bytes.size() <= (16U << 20), ErrorCode::InvalidEngine, "section ", kind, " has ",
            bytes.size(), " bytes, at most ", 16U << 20, " are allowed");
    try {
        return f(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    } catch (const Error& e) {
        fail(ErrorCode::InvalidEngine, "section ", kind, " is invalid: ", e.message());
    }
}

std::vector<Profile> read_profiles(const Container& c) {
    return parse_section(c, SectionKind::Profiles, [](std::string_view text) {
        std::vector<Profile> out;
        Json all = Json::parse(text);
        for (const Json& p : all.items()) {
            Profile profile;
            for (const Json& r : p.items()) {
                profile.inputs.push_back({r.at("input").get<std::string>(),
                                          r.at("min").get<Shape>(), r.at("opt").get<Shape>(),
                                          r.at("max").get<Shape>()});
            }
            out.push_back(std::move(profile));
        }
        return out;
    });
}

// Sizes and indices are checked before use: if they lie in a file that others may write to, they
// are copied (ADR 0015).
bool may_be_indices(DType t) {
    return is_integer(t) && bit_width(t) >= 16;
}

// The offset of a weight that was left out.
constexpr uint64_t absent_offset = UINT64_MAX;

Graph read_engine_graph(const Container& c, SectionKind kind, AbsentTensors& absent) {
    std::span<const std::byte> weights = c.section(SectionKind::Weights);
    ReadOptions options;
    options.find_op = find_op;
    options.fetch = [&](DType dtype, const Shape& shape, uint64_t offset) {
        auto bytes = static_cast<uint64_t>(byte_size(dtype, count_of(shape)));
        if (offset == absent_offset && c.find(SectionKind::Refit) != nullptr) {
            return absent.make(dtype, shape);
        }
        require(offset % 64 == 0 && offset <= weights.size() && bytes <= weights.size() - offset,
                ErrorCode::InvalidEngine, "a weight ", dtype, shape, " at ", offset, " with ",
                bytes, " bytes lies outside the ", weights.size(), " bytes of weights");
        Tensor t = Tensor::wrap(dtype, shape, weights.subspan(offset, bytes), c.owner());
        return may_be_indices(dtype) ? t.clone() : t;
    };
    return read_graph(c.section(kind), options);
}

std::shared_ptr<const RefitSource> read_source(const Container& c, AbsentTensors& absent) {
    if (c.find(SectionKind::Refit) == nullptr) {
        return nullptr;
    }
    auto source =
        std::make_shared<RefitSource>(parse_section(c, SectionKind::Refit, refit_source_from_json));
    source->graph =
        std::make_shared<const Graph>(read_engine_graph(c, SectionKind::Source, absent));
    NamedTensors constants = named_constants(*source->graph);
    for (const Weight& w : source->weights) {
        auto it = constants.find(w.name);
        require(it != constants.end() && it->second.dtype() == w.dtype &&
                    it->second.shape() == w.shape,
                ErrorCode::InvalidEngine, "section refit lists weights '", w.name,
                "', which the graph does not have with this type");
    }
    return source;
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

// Streams weights into the file in graph order.
class WeightWriter {
public:
    explicit WeightWriter(ContainerWriter& out) : out_(out) {}

    uint64_t store(const Tensor& t) {
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
        check_pages(bytes);
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

struct WeightSum : NullVisitor {
    using NullVisitor::field;
    uint64_t bytes = 0;
    void field(std::string_view, Tensor& v) override { bytes += v.bytes().size(); }
};

} // namespace

std::shared_ptr<const Engine> Engine::load(const std::string& path, CheckWeights check,
                                           const Trust& trust) {
    TraceSpan span("read engine", path);
    auto file = MappedFile::open(path);
    return with_place([&] { return path; },
                      [&] { return load_from(file->bytes(), file, check, trust, path); });
}

std::shared_ptr<const Engine> Engine::load(std::span<const std::byte> bytes,
                                           std::shared_ptr<const void> owner, CheckWeights check,
                                           const Trust& trust) {
    return load_from(bytes, std::move(owner), check, trust, "");
}

std::shared_ptr<const Engine> Engine::load_from(std::span<const std::byte> bytes,
                                                std::shared_ptr<const void> owner,
                                                CheckWeights check, const Trust& trust,
                                                const std::string& path) {
    Container c(bytes, std::move(owner));
    std::shared_ptr<Engine> e(new Engine);
    std::string distrust = reason_for_distrust(c, trust);
    e->distrust_ = trust.allow_code ? std::string() : std::move(distrust);
    if (check != CheckWeights::Never) {
        e->check_ = std::make_shared<WeightCheck>(c, path);
    }
    if (check == CheckWeights::First) {
        e->check_->wait();
    }
    AbsentTensors absent;
    e->graph_ = std::make_shared<const Graph>(read_engine_graph(c, SectionKind::Graph, absent));
    e->source_ = read_source(c, absent);
    e->profiles_ = read_profiles(c);
    try {
        for (const Profile& p : e->profiles_) {
            check_profile(*e->graph_, p);
        }
    } catch (const Error& error) {
        fail(ErrorCode::InvalidEngine, error.message());
    }
    e->metadata_ = parse_section(c, SectionKind::Metadata, [](std::string_view text) {
        return Json::parse(text).get<Properties>();
    });
    e->kernels_ = read_kernels(c);
    if (c.find(SectionKind::Formats) != nullptr) {
        e->formats_ = parse_section(c, SectionKind::Formats, [&](std::string_view text) {
            return formats_from_json(*e->graph_, Json::parse(text));
        });
    }
    return e;
}

// Metadata key: the compute capabilities with kernels.
static constexpr const char* capabilities_key = "kernels_for";

std::shared_ptr<const Engine> Engine::with_kernels(KernelBinaries kernels,
                                                   std::span<const int> capabilities) const {
    std::shared_ptr<Engine> e(new Engine(*this));
    if (!capabilities.empty()) {
        std::vector<std::string> names;
        for (int cc : std::set(capabilities.begin(), capabilities.end())) {
            names.push_back(std::to_string(cc));
        }
        e->metadata_[capabilities_key] = join(names, ",");
    }
    e->kernels_ = std::make_shared<const KernelBinaries>(std::move(kernels));
    return e;
}

std::shared_ptr<const Engine> Engine::with_graph(Graph graph, Properties metadata) const {
    for (const Profile& p : profiles_) {
        check_profile(graph, p);
    }
    check_formats(graph, formats_);
    std::shared_ptr<Engine> e(new Engine(*this));
    e->graph_ = std::make_shared<const Graph>(std::move(graph));
    e->metadata_ = std::move(metadata);
    e->source_ = nullptr;
    e->check_ = nullptr; // of other weights
    return e;
}

std::shared_ptr<const Engine> Engine::with_source(std::shared_ptr<const RefitSource> source) const {
    std::shared_ptr<Engine> e(new Engine(*this));
    e->source_ = std::move(source);
    return e;
}

std::shared_ptr<const Engine> Engine::with_formats(IoFormats formats) const {
    check_formats(*graph_, formats);
    std::shared_ptr<Engine> e(new Engine(*this));
    e->formats_ = formats.are_plain() ? IoFormats() : std::move(formats);
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

void Engine::check_weights() const {
    if (check_ != nullptr) {
        check_->wait();
    }
    if (pages_were_lost()) { // lost since they were hashed, or in a model's file
        visit_nodes(*graph_, [](const Graph&, const Node& n) {
            if (n.is(constant_def)) {
                check_pages(n.as<Constant>().value.bytes());
            }
        });
    }
}

static constexpr const char* debug_outputs_key = "debug_outputs";

void put_debug_outputs(size_t count, Properties& metadata) {
    if (count > 0) {
        metadata[debug_outputs_key] = std::to_string(count);
    }
}

size_t Engine::result_count() const {
    size_t all = graph_->outputs().size();
    auto it = metadata_.find(debug_outputs_key);
    if (it == metadata_.end()) {
        return all;
    }
    size_t count = all + 1;
    const std::string& text = it->second;
    auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
    require(problem == std::errc() && end == text.data() + text.size() && count <= all,
            ErrorCode::InvalidEngine, "the metadata declares ", text,
            " debug outputs; the graph has ", all, all == 1 ? " output" : " outputs");
    return all - count;
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

// The contents of a file.
struct Content {
    const Graph& graph;
    const std::vector<Profile>& profiles;
    const Properties& metadata;
    const KernelBinaries& kernels;
    const IoFormats& formats;
    const RefitSource* source = nullptr;
    bool weights = true;
    bool trusted = true; // its code may run

    uint32_t sections() const {
        return 5U + (kernels.empty() ? 0U : 1U) + (source == nullptr ? 0U : 2U) +
               (formats.are_plain() ? 0U : 1U);
    }
};

uint64_t header_flags(const Content& content) {
    uint64_t flags = content.metadata.contains(streaming_property) ? streaming_flag : 0;
    auto it = content.metadata.find(capabilities_key);
    if (it == content.metadata.end() || content.kernels.empty()) {
        return flags;
    }
    std::string list = str(",", it->second, ",");
    for (size_t i = 0; i < flagged_capabilities.size(); ++i) {
        bool listed = list.find(str(",", flagged_capabilities[i], ",")) != std::string::npos;
        flags |= uint64_t{listed} << (static_cast<size_t>(first_capability_flag) + i);
    }
    return flags;
}

void write_sections(ContainerWriter& out, const Content& content) {
    out.set_flags(header_flags(content));
    for (const Profile& p : content.profiles) {
        check_profile(content.graph, p);
    }
    AbsentTensors absent;
    out.begin(SectionKind::Weights, true, weight_alignment);
    WeightWriter weights(out);
    auto written = [&](const Graph& g) {
        return write_graph(
            g, [&](const Tensor& t) { return absent.has(t) ? absent_offset : weights.store(t); });
    };
    std::vector<std::byte> body =
        written(content.weights ? content.graph : without_weights(content.graph, absent));
    std::vector<std::byte> source;
    if (content.source != nullptr) {
        source = written(content.weights ? *content.source->graph
                                         : without_weights(*content.source, absent));
    }
    out.end();
    std::span<const std::byte> hashes = weights.chunk_hashes();
    out.set_xxh3(SectionKind::Weights, xxh3_128(hashes));
    auto write = [&](SectionKind kind, bool required, std::span<const std::byte> bytes) {
        out.begin(kind, required);
        out.write(bytes);
        out.end();
    };
    write(SectionKind::WeightHashes, true, hashes);
    write(SectionKind::Graph, true, body);
    write_text(out, SectionKind::Profiles, to_json(content.profiles));
    write_text(out, SectionKind::Metadata, Json(content.metadata));
    if (!content.kernels.empty()) {
        write_kernels(out, content.kernels);
    }
    if (content.source != nullptr) {
        std::string text = to_json_text(*content.source, !content.weights);
        write(SectionKind::Source, !content.weights, source);
        write(SectionKind::Refit, !content.weights, std::as_bytes(std::span(text)));
    }
    if (!content.formats.are_plain()) {
        write_text(out, SectionKind::Formats, formats_json(content.graph, content.formats));
    }
    std::vector<std::byte> head = out.commit();
    if (content.trusted) {
        remember_own_engine(head);
    }
}

const KernelBinaries no_kernels;
const IoFormats plain_formats;

Content content_of(const Engine& engine, const WriteOptions& options) {
    engine.check_weights(); // else damaged weights would get valid hashes
    bool keeps = options.refit && engine.source() != nullptr;
    bool weights = options.weights && !engine.weights_missing();
    require(weights || keeps, ErrorCode::InvalidArgument,
            "an engine written without weights must be refittable: ",
            engine.source() == nullptr ? "build it with a refit flag"
                                       : "do not drop its refit data");
    return {engine.graph(),    engine.profiles(),
            engine.metadata(), engine.kernels() != nullptr ? *engine.kernels() : no_kernels,
            engine.formats(),  keeps ? engine.source().get() : nullptr,
            weights,           engine.distrust().empty()};
}

} // namespace

void write_engine(const std::string& path, const Graph& graph, const std::vector<Profile>& profiles,
                  const Properties& metadata, const KernelBinaries& kernels) {
    Content content{graph, profiles, metadata, kernels, plain_formats};
    ContainerWriter out(path, content.sections());
    write_sections(out, content);
}

WriteOptions as_built(const Engine& engine) {
    return {engine.source() == nullptr || !engine.source()->stripped, true};
}

void write_engine(const std::string& path, const Engine& engine, const WriteOptions& options) {
    Content content = content_of(engine, options);
    ContainerWriter out(path, content.sections());
    write_sections(out, content);
}

AlignedBytes engine_bytes(const Engine& engine, const WriteOptions& options) {
    Content content = content_of(engine, options);
    constexpr uint64_t around_weights = 1ULL << 20;
    AlignedBytes out;
    out.reserve((content.weights ? engine.weight_bytes() : 0) + around_weights);
    ContainerWriter writer(out, content.sections());
    write_sections(writer, content);
    return out;
}

} // namespace ingot
