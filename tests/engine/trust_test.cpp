// SPDX-License-Identifier: Apache-2.0
// Code that an engine brings runs when a trusted key has signed it, when it is allowed by name, or
// when this process has built it; signed engines that were changed are refused.
#include "backends/backends.h"
#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "counts.h"
#include "engine/engine.h"
#include "engine/trust.h"
#include "error_of.h"
#include "ops/ops.h"
#include "ops/plugin.h"
#include "trust_keys.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ingot {
namespace {

using test::error_of;
using test::private_key_1;
using test::private_key_2;
using test::public_key_1;
using test::public_key_2;

Graph doubled() {
    Graph g("doubled");
    Value x = g.add_input("x", parse_type("f32[64]"));
    Tensor w = Tensor::empty(DType::F32, {64});
    for (int64_t i = 0; i < 64; ++i) {
        w.set_f64(i, 2 + static_cast<double>(i % 5 == 1));
    }
    g.add_output("y", ops::mul(g, x, ops::constant(g, w)));
    return g;
}

Graph with_source() {
    Graph g("with source");
    SourceKernel k;
    k.title = "Copy";
    k.source = "extern \"C\" __global__ void copy(const float* x, float* y) { *y = *x; }";
    k.kernel = "copy";
    k.signature = "float32[n] -> float32[n]";
    k.grid = "1";
    k.block = "1";
    g.set_origin("copies");
    g.add_output("y",
                 g.add(cuda_source_def, k, std::array{g.add_input("x", parse_type("f32[4]"))})[0]);
    return g;
}

void rehash(AlignedBytes& b) {
    uint32_t count = 0;
    std::memcpy(&count, b.data() + 32, 4);
    HashStream h(false);
    h.add(std::span(b).first(48));
    h.add(std::span(b).subspan(64, size_t{count} * 88));
    Hash128 hash = h.xxh3();
    std::memcpy(b.data() + 48, &hash.high, 8);
    std::memcpy(b.data() + 56, &hash.low, 8);
}

/// As another process wrote it: this one does not know these bytes.
AlignedBytes foreign(Graph g = doubled(), bool with_kernels = true) {
    auto engine = Engine::create(std::move(g), {}, {{"model", "test"}});
    if (with_kernels) {
        engine = engine->with_kernels({{std::string(32, 'a'), "native code"}}, std::array{90});
    }
    AlignedBytes bytes = engine_bytes(*engine);
    bytes[12] ^= std::byte{1}; // the release that wrote it
    rehash(bytes);
    return bytes;
}

std::shared_ptr<const Engine> load(const AlignedBytes& bytes, const Trust& trust = {}) {
    auto owner = std::make_shared<const AlignedBytes>(bytes);
    return Engine::load(*owner, owner, CheckWeights::First, trust);
}

AlignedBytes by_key(const std::string& key, const AlignedBytes& bytes = foreign()) {
    return signed_engine(bytes, private_key_from_pem(key));
}

Trust keys(const std::string& text) {
    return {parse_trusted_keys(text)};
}

/// A GPU to all appearances, which keeps what it was given to run.
class LikeAGpu : public Backend {
public:
    std::string_view name() const override { return "like a GPU"; }
    std::string description() const override { return "for tests"; }
    int compute_capability() const override { return 90; }
    std::shared_ptr<const Executable> compile(std::shared_ptr<const Graph> graph,
                                              const CompileOptions& options) const override {
        kernels = options.kernels;
        ++compiled;
        return cpu_backend().compile(std::move(graph), {});
    }
    mutable std::shared_ptr<const KernelBinaries> kernels;
    mutable int compiled = 0;
};

/// The lines that are logged while it lives.
class Lines {
public:
    Lines() {
        set_log_sink(
            [](void* self, LogLevel, std::string_view line) {
                static_cast<Lines*>(self)->text += str(line, "\n");
            },
            this, LogLevel::Warning);
    }
    ~Lines() { set_log_sink(nullptr, nullptr, LogLevel::Warning); }
    std::string text;
};

const std::string remedy = "; sign it with 'ingot sign' and give the public key (--trustedKeys, "
                           "ingot::setTrustedKeys), or "
                           "allow its code (--allowEngineCode, IRuntime::setEngineHostCodeAllowed)";

TEST(Trust, KernelsOfAnUnsignedEngineAreCompiledAnew) {
    LikeAGpu gpu;
    Lines lines;
    auto engine = load(foreign());
    ASSERT_NE(engine->kernels(), nullptr);
    Context context(engine, gpu);
    EXPECT_EQ(gpu.kernels, nullptr);
    EXPECT_EQ(lines.text,
              "the engine's 1 kernels built ahead are not used but compiled anew: it is "
              "not signed" +
                  remedy + "\n");
    Tensor x = Tensor::empty(DType::F32, {64});
    x.set_f64(2, 3);
    EXPECT_EQ(context.run(std::array{x})[0].get_f64(2), 6);
    lines.text.clear();
    Context on_cpu(engine, cpu_backend());
    EXPECT_EQ(lines.text, "");
}

TEST(Trust, SourceTextOfAnUnsignedEngineIsRefusedOnAGpu) {
    LikeAGpu gpu;
    AlignedBytes bytes = foreign(with_source(), false);
    EXPECT_EQ(error_of([&] { Context(load(bytes), gpu); }),
              "node 'copies' is a kernel of CUDA source text that the engine brings, and it is not "
              "signed" +
                  remedy);
    EXPECT_EQ(gpu.compiled, 0);
}

TEST(Trust, CodeIsTakenFromWhoIsTrusted) {
    AlignedBytes unsigned_bytes = foreign();
    Trust allowed;
    allowed.allow_code = true;
    std::vector<std::shared_ptr<const Engine>> trusted = {
        load(unsigned_bytes, allowed),
        load(by_key(private_key_1), keys(public_key_1)),
        load(by_key(private_key_1), keys(public_key_2 + public_key_1)),
        load(by_key(private_key_1), keys("# comment\nexpires: 2999-12-31\n" + public_key_1)),
        load(by_key(private_key_2, by_key(private_key_1)), keys(public_key_2)), // signed again
        load(engine_bytes(
            *Engine::create(doubled(), {}, {})->with_kernels({{std::string(32, 'a'), "x"}}))),
    };
    for (size_t i = 0; i < trusted.size(); ++i) {
        SCOPED_TRACE(i);
        LikeAGpu gpu;
        Lines lines;
        Context context(trusted[i], gpu);
        EXPECT_NE(gpu.kernels, nullptr);
        EXPECT_EQ(lines.text, "");
    }
    EXPECT_EQ(load(by_key(private_key_1))->metadata().at("model"), "test");
}

TEST(Trust, ThereIsNoWayAroundIt) {
    // Neither another graph, nor writing it again, nor a refit make an engine trusted.
    auto engine = load(foreign());
    EXPECT_EQ(engine->distrust(), "it is not signed");
    EXPECT_EQ(engine->with_graph(doubled(), {})->distrust(), engine->distrust());
    EXPECT_EQ(engine->with_kernels({})->distrust(), engine->distrust());
    EXPECT_EQ(engine->with_formats({})->distrust(), engine->distrust());
    // Bytes that this process has not written for an engine of its own.
    engine = engine->with_kernels({{std::string(32, 'b'), "other code"}}, std::array{80});
    EXPECT_EQ(load(engine_bytes(*engine))->distrust(), engine->distrust());
    TemporaryFolder folder;
    write_engine(folder.path() + "/e", *engine);
    EXPECT_EQ(Engine::load(folder.path() + "/e")->distrust(), engine->distrust());
}

struct Case {
    const char* name;
    std::function<AlignedBytes()> bytes;
    std::string trusted; // keys
    std::string expected;
};

/// Puts the hash of a changed section into its row, as an attacker would.
void make_hashes_right(AlignedBytes& b, SectionKind kind, bool with_sha) {
    uint32_t count = 0;
    std::memcpy(&count, b.data() + 32, 4);
    for (size_t row = 64; row < 64 + size_t{count} * 88; row += 88) {
        uint32_t k = 0;
        uint64_t place[2];
        std::memcpy(&k, b.data() + row, 4);
        std::memcpy(place, b.data() + row + 8, 16);
        if (k != static_cast<uint32_t>(kind)) {
            continue;
        }
        auto data = std::span(b).subspan(place[0], place[1]);
        Hash128 h = xxh3_128(data);
        std::memcpy(b.data() + row + 24, &h.high, 8);
        std::memcpy(b.data() + row + 32, &h.low, 8);
        if (with_sha) {
            Sha256 sha = sha256(data);
            std::memcpy(b.data() + row + 40, sha.data(), sha.size());
        }
    }
    rehash(b);
}

AlignedBytes changed(AlignedBytes b, SectionKind kind, size_t at, bool with_sha) {
    auto owner = std::make_shared<AlignedBytes>(b);
    Container c(*owner, owner);
    b[c.find(kind)->offset + at] ^= std::byte{1};
    make_hashes_right(b, kind, with_sha);
    return b;
}

/// Without the section of the signature.
AlignedBytes stripped(const AlignedBytes& b) {
    Container c(b, nullptr);
    AlignedBytes out;
    ContainerWriter w(out, static_cast<uint32_t>(c.sections().size() - 1));
    w.set_producer(c.producer());
    w.set_flags(c.flags());
    for (const Section& s : c.sections()) {
        if (s.kind != SectionKind::Signature) {
            w.begin(s.kind, s.required, s.alignment);
            w.write(c.section_bytes(s));
            w.end();
            w.set_xxh3(s.kind, s.xxh3);
        }
    }
    w.commit();
    return out;
}

/// The signature of one engine in another.
AlignedBytes transplanted() {
    AlignedBytes from = by_key(private_key_1, foreign(with_source()));
    AlignedBytes to = by_key(private_key_2);
    Container a(from, nullptr);
    Container b(to, nullptr);
    uint64_t at = b.find(SectionKind::Signature)->offset;
    auto bytes = a.section(SectionKind::Signature);
    std::copy(bytes.begin(), bytes.end(), to.begin() + static_cast<std::ptrdiff_t>(at));
    make_hashes_right(to, SectionKind::Signature, true);
    return to;
}

const std::string only = "only engines signed by a trusted key are allowed, and ";
const std::string no_match = " does not match: the engine was changed after it was signed";

std::string sha_of(const char* section) {
    return str("section ", section,
               " does not match its SHA-256: the engine was changed after it was written");
}

TEST(Trust, OnlySignedEnginesAreLoadedWhereThatIsAskedFor) {
    const std::string name_1 = key_name(public_key_from_pem(public_key_1));
    const std::string name_2 = key_name(public_key_from_pem(public_key_2));
    auto signed_1 = [] { return by_key(private_key_1); };
    auto change = [](SectionKind kind, size_t at, bool with_sha) {
        return [=] { return changed(by_key(private_key_1), kind, at, with_sha); };
    };
    const std::vector<Case> cases = {
        {"not signed", [] { return foreign(); }, public_key_1, only + "it is not signed"},
        {"not signed, no code", [] { return foreign(doubled(), false); }, public_key_1,
         only + "it is not signed"},
        {"own, not signed", [] { return engine_bytes(*Engine::create(doubled(), {}, {})); },
         public_key_1, only + "it is not signed"},
        {"no keys", signed_1, "", only + "it is signed, but no trusted keys are given"},
        {"another key", signed_1, public_key_2,
         only + "it is signed by key " + name_1 + ", which is not one of the trusted keys"},
        {"signed again by another", [] { return by_key(private_key_2, by_key(private_key_1)); },
         public_key_1,
         only + "it is signed by key " + name_2 + ", which is not one of the trusted keys"},
        {"expired", signed_1, "expires: 2001-12-31\n" + public_key_1,
         only + "the trusted key " + name_1 + " that signed it expired after 2001-12-31"},
        {"expired, and another", signed_1, "expires: 2001-12-31\n" + public_key_1 + public_key_2,
         only + "the trusted key " + name_1 + " that signed it expired after 2001-12-31"},
        {"signature taken out", [] { return stripped(by_key(private_key_1)); }, public_key_1,
         only + "it is not signed"},
        {"signature of another engine", transplanted, public_key_1,
         "the signature of key " + name_1 + no_match},
        {"changed key", change(SectionKind::Signature, 8, true), public_key_1,
         "which is not one of"},
        {"changed signature", change(SectionKind::Signature, 40, true), public_key_1,
         "the signature of key " + name_1 + no_match},
        {"end of the signature", change(SectionKind::Signature, 103, true), public_key_1,
         "the signature of key " + name_1 + no_match},
        {"another version", change(SectionKind::Signature, 1, true), public_key_1,
         "section signature has version 257, this Ingot reads 1; use a newer Ingot or sign the "
         "engine again"},
        {"changed kernels", change(SectionKind::Cubins, 45, true), public_key_1,
         "the signature of key " + name_1 + no_match},
        {"changed kernels, only XXH3 made right", change(SectionKind::Cubins, 45, false),
         public_key_1, "the signature of key " + name_1 + no_match},
        {"changed graph", change(SectionKind::Graph, 20, true), public_key_1,
         "the signature of key " + name_1 + no_match},
        {"changed metadata, only XXH3 made right", change(SectionKind::Metadata, 3, false),
         public_key_1, "the signature of key " + name_1 + no_match},
        {"changed weights", // whose XXH3 cannot be kept: the row has that of the chunk hashes
         [] {
             AlignedBytes b = by_key(private_key_1);
             Container c(b, nullptr);
             b[c.find(SectionKind::Weights)->offset] ^= std::byte{1};
             return b;
         },
         public_key_1, sha_of("weights")},
        {"changed flags",
         [] {
             AlignedBytes b = by_key(private_key_1);
             b[23] ^= std::byte{0x80};
             rehash(b);
             return b;
         },
         public_key_1, "the signature of key " + name_1 + no_match},
        {"changed release",
         [] {
             AlignedBytes b = by_key(private_key_1);
             b[12] ^= std::byte{1};
             rehash(b);
             return b;
         },
         public_key_1, "the signature of key " + name_1 + no_match},
    };
    EXPECT_GE(cases.size(), 20U);
    Trust good = keys(public_key_1);
    good.only_signed = true;
    EXPECT_EQ(load(signed_1(), good)->distrust(), "");
    for (const Case& c : cases) {
        Trust trust = c.trusted.empty() ? Trust() : keys(c.trusted);
        trust.only_signed = true;
        trust.allow_code = true; // changes nothing
        auto bytes = std::make_shared<const AlignedBytes>(c.bytes());
        std::string error =
            error_of([&] { Engine::load(*bytes, bytes, CheckWeights::Never, trust); });
        EXPECT_NE(error.find(c.expected), std::string::npos) << c.name << ": " << error;
        EXPECT_NE(error, "") << c.name;
    }
    test::record_injections(std::ssize(cases), std::ssize(cases));
}

TEST(Trust, MalformedKeysAreRefusedWithTheLine) {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"", "there is no key; 'openssl pkey -in key.pem -pubout' prints that of a private key"},
        {"# only\n\n", "there is no key"},
        {"a key\n" + public_key_1, "line 1: expected a public key in PEM, 'expires: YYYY-MM-DD' "
                                   "before it, or a comment (#)"},
        {public_key_1 + "expires: 2030-01-01\n", "line 4: a date that no key follows"},
        {"expire: 2030-01-01\n" + public_key_1, "line 1: expected a public key in PEM"},
        {"expires: 2030-02-30\n" + public_key_1,
         "line 1: '2030-02-30' is no date, expected expires: "
         "YYYY-MM-DD"},
        {"expires: tomorrow\n" + public_key_1, "line 1: 'tomorrow' is no date"},
        {"expires: 2030-01-01\nexpires: 2031-01-01\n" + public_key_1, "line 2: expected"},
        {public_key_1.substr(0, 60), "line 2: the key does not end"},
        {private_key_1, "line 3: no Ed25519 public key in PEM"},
        {public_key_1 + "\n-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
         "line 7: no Ed25519 public key in PEM"},
    };
    for (const auto& [text, expected] : cases) {
        std::string error = error_of([&, &t = text] { parse_trusted_keys(t); });
        EXPECT_EQ(error.substr(0, expected.size()), expected) << text;
    }
    EXPECT_EQ(
        parse_trusted_keys(" " + public_key_1 + "\r\n# x\nexpires: 2030-01-01\n" + public_key_2)
            .size(),
        2U);
}

TEST(Trust, DamagedEnginesAreNotSigned) {
    AlignedBytes bytes = foreign();
    bytes[Container(bytes, nullptr).find(SectionKind::Weights)->offset] ^= std::byte{4};
    std::string error = error_of([&] { by_key(private_key_1, bytes); });
    EXPECT_NE(error.find("does not match its hash: the file is damaged"), std::string::npos)
        << error;
    TemporaryFolder folder;
    std::string path = folder.path() + "/e";
    write_file(path, foreign());
    sign_engine(path, path, private_key_from_pem(private_key_1)); // in its place
    EXPECT_EQ(Engine::load(path, CheckWeights::First, keys(public_key_1))->distrust(), "");
    auto file = MappedFile::open(path);
    EXPECT_EQ(signer_of(Container(file->bytes(), file)), public_key_from_pem(public_key_1));
}

} // namespace
} // namespace ingot
