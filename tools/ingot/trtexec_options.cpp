// SPDX-License-Identifier: Apache-2.0
#include "trtexec_options.h"

#include "api/options/build.h"
#include "api/options/common.h"
#include "api/options/measure.h"
#include "api/options/run.h"
#include "base/error.h"
#include "common.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace ingot::tool {

namespace {

template <class... Args>
void check(bool holds, const Args&... message) {
    require(holds, ErrorCode::InvalidArgument, message...);
}

bool optional_value(std::string_view value) {
    return !value.empty() && value.front() == '[';
}

std::vector<std::string> known_names() {
    std::vector<std::string> names;
    auto add = [&](std::string_view row) {
        for (std::string& n : split_names(row)) {
            names.push_back(std::move(n));
        }
    };
    for (const OptionRow& r : option_rows()) {
        if ((r.commands & command::Trtexec) != 0) {
            add(r.names);
        }
    }
    for (const IgnoredRow& r : ignored_rows()) {
        add(r.names);
    }
    return names;
}

[[noreturn]] void refuse_unknown(const std::string& word, const std::string& name) {
    check(word.starts_with("-"), "unexpected argument '", word,
          "': a model is given as --onnx=FILE or --loadEngine=FILE");
    std::string near = nearest(name, known_names());
    fail(ErrorCode::InvalidArgument, "Unknown option: ", name,
         near.empty() ? std::string("; --help lists all") : str("; did you mean ", near, "?"));
}

class Parser {
public:
    explicit Parser(std::span<const std::string> arguments) : arguments_(arguments) {
        t_.pairs.emplace_back();
    }
    TrtexecOptions parse();

private:
    void argument();
    void known(const OptionRow& row, const std::string& name, const std::string& value);
    void ignored(const IgnoredRow& row, const std::string& name, const std::string& value);
    std::string value_of(const std::string& name, std::string_view kind, bool inline_value,
                         std::string value);
    void environment();
    void pools();

    TrtexecOptions t_;
    std::span<const std::string> arguments_;
    size_t at_ = 0;
    size_t profile_ = 0;
    size_t pair_ = 0;
};

std::string Parser::value_of(const std::string& name, std::string_view kind, bool inline_value,
                             std::string value) {
    if (kind.empty() || inline_value || optional_value(kind)) {
        check(kind.empty() || !inline_value || !value.empty() || optional_value(kind), name,
              " needs a value: ", name, "=", kind);
        return value;
    }
    bool follows = at_ < arguments_.size() && !arguments_[at_].starts_with("--");
    check(follows, name, " needs a value: ", name, "=", kind);
    return arguments_[at_++];
}

void Parser::argument() {
    const std::string& word = arguments_[at_++];
    size_t equals = word.find('=');
    bool inline_value = equals != std::string::npos;
    std::string name = word.substr(0, equals);
    std::string value = inline_value ? word.substr(equals + 1) : std::string();
    if (const OptionRow* row = find_option(command::Trtexec, name)) {
        known(*row, name, value_of(name, row->value, inline_value, value));
    } else if (const IgnoredRow* no = find_ignored(name)) {
        ignored(*no, name, value_of(name, no->value, inline_value, value));
    } else {
        refuse_unknown(word, name);
    }
}

void Parser::known(const OptionRow& row, const std::string& name, const std::string& value) {
    set_option(t_.o, row, name, value);
    bool again = !t_.given.insert(row.field).second;
    auto once = [&](std::string& slot) {
        check(slot.empty(), name, "=", value, " is given twice for the same index: it was ", slot);
        slot = value;
    };
    if (row.field == "profile_index") {
        profile_ = static_cast<size_t>(t_.o.build().profile_index);
    } else if (row.field == "reference_pair") {
        pair_ = static_cast<size_t>(t_.o.measure().reference_pair);
        t_.pairs.resize(std::max(t_.pairs.size(), pair_ + 1));
    } else if (row.field == "min_shapes" || row.field == "opt_shapes" ||
               row.field == "max_shapes") {
        t_.shape_specs.resize(std::max(t_.shape_specs.size(), profile_ + 1));
        once(t_.shape_specs[profile_][row.field == "min_shapes"   ? 0
                                      : row.field == "opt_shapes" ? 1
                                                                  : 2]);
    } else if (row.field == "load_inputs") {
        once(t_.pairs[pair_].inputs);
    } else if (row.field == "load_references") {
        once(t_.pairs[pair_].outputs);
    } else {
        check(!again || row.type == "Flag" || row.type == "List", name, " is given twice");
    }
}

void Parser::ignored(const IgnoredRow& row, const std::string& name, const std::string& value) {
    if (!optional_value(row.value)) {
        check_value(row.value, name, value);
    }
    t_.ignored[name] = value;
    t_.notes.push_back(
        {!row.already,
         str(name, row.already ? " changes nothing: " : " is ignored: ", row.reason)});
}

void Parser::environment() {
    for (const OptionRow& r : option_rows()) {
        std::string variable = environment_name(r.field);
        const char* text = std::getenv(variable.c_str());
        bool wanted = (r.commands & command::Trtexec) != 0 && text != nullptr && *text != '\0' &&
                      !t_.has(r.field) && r.field != "help" && r.field != "version";
        if (wanted) {
            known(r, variable, text);
        }
    }
}

// "workspace:1024,tacticSharedMem:48K"; MiB without a unit letter.
void Parser::pools() {
    constexpr std::array<std::string_view, 5> names = {"workspace", "tacticSharedMem", "dlaSRAM",
                                                       "dlaLocalDRAM", "dlaGlobalDRAM"};
    for (const std::string& list : t_.o.build().pools) {
        for (const std::string& part : parse_names(list)) {
            std::string name = part.substr(0, part.find(':'));
            check(std::find(names.begin(), names.end(), name) != names.end(),
                  "--memPoolSize=", list, ": there is no pool '", name,
                  "'; expected workspace, tacticSharedMem, dlaSRAM, dlaLocalDRAM or "
                  "dlaGlobalDRAM");
            std::string_view size = std::string_view(part).substr(name.size());
            size.remove_prefix(size.empty() ? 0 : 1);
            double number = 0;
            auto [last, error] = std::from_chars(size.data(), size.data() + size.size(), number);
            std::string_view unit(last, static_cast<size_t>(size.data() + size.size() - last));
            double scale = unit == "B"                   ? 1.0
                           : unit == "K"                 ? 0x1p10
                           : unit.empty() || unit == "M" ? 0x1p20
                           : unit == "G"                 ? 0x1p30
                                                         : 0.0;
            check(error == std::errc() && scale > 0 && number >= 0 && number * scale < 0x1p60,
                  "--memPoolSize=", list, ": '", part,
                  "': expected name:size, such as workspace:512 or tacticSharedMem:48K");
            t_.pools[name] = static_cast<int64_t>(number * scale);
        }
    }
    if (t_.has("workspace_mebibytes")) {
        constexpr int64_t mebibyte = 1 << 20;
        t_.pools.emplace("workspace", t_.o.build().workspace_mebibytes * mebibyte);
    }
    for (const auto& [name, bytes] : t_.pools) {
        if (name != "workspace" && name != "tacticSharedMem") {
            t_.notes.push_back({true, str("--memPoolSize=", name,
                                          " is ignored: Ingot runs on GPUs "
                                          "and CPUs, not on a DLA")});
        }
    }
}

void check_references(const TrtexecOptions& t) {
    bool several = t.has("reference_pair");
    bool compared = several || t.has("load_references");
    check(
        !compared || t.o.measure().accuracy_threshold > 0,
        "--accuracyThreshold with a value above 0 is required with --loadRefOutputs or --refPair");
    check(!several || t.pairs.size() > 1,
          "--refPair needs two pairs at least; leave it out for a single pair");
    for (size_t i = 0; several && i < t.pairs.size(); ++i) {
        check(!t.pairs[i].inputs.empty() && !t.pairs[i].outputs.empty(), "--refPair=", i,
              ": expected --loadInputs and --loadRefOutputs after it");
    }
}

// Build options, which trtexec also accepts beside --loadEngine.
void note_build_options(TrtexecOptions& t) {
    std::vector<std::string> names;
    for (const OptionRow& r : option_rows()) {
        if (r.build_only && t.has(r.field)) {
            names.push_back(split_names(r.names).front());
        }
    }
    if (t.loads() && !names.empty()) {
        t.notes.push_back({true, str(join(names, ", "), names.size() == 1 ? " has" : " have",
                                     " no effect with --loadEngine: that was decided when the "
                                     "engine was built")});
    }
}

void note_precision(TrtexecOptions& t) {
    Options& o = t.o;
    auto warn = [&](std::string text) { t.notes.push_back({true, std::move(text)}); };
    if (o.build().strongly_typed &&
        (o.build().fp16 || o.build().bf16 || o.build().int8 || o.build().best)) {
        warn("precision flags have no effect with --stronglyTyped: the model's own types hold");
        o.build().fp16 = o.build().bf16 = o.build().int8 = o.build().best = false;
    }
    if (o.build().best) {
        o.build().fp16 = true;
        o.build().int8 = o.build().int8 || !o.build().calib.empty();
    }
    if (o.build().fp16 && o.build().bf16) {
        warn("--bf16 has no effect beside --fp16: one type of half precision is used");
        o.build().bf16 = false;
    }
    if (!o.build().calib.empty() && !o.build().int8) {
        warn("--calib has no effect without --int8");
    }
}

TrtexecOptions Parser::parse() {
    while (at_ < arguments_.size()) {
        argument();
        if (t_.o.common().help || t_.o.common().version) {
            return std::move(t_);
        }
    }
    environment();
    pools();
    check(t_.o.run().lean_path.empty() || t_.o.run().use_runtime != "full",
          "--leanDLLPath needs --useRuntime=lean or dispatch");
    check_references(t_);
    for (size_t i = 0; i < t_.shape_specs.size(); ++i) {
        const auto& s = t_.shape_specs[i];
        check(!s[0].empty() || !s[1].empty() || !s[2].empty(), "--profile=", i,
              " has no shapes: profiles are numbered from 0 without gaps");
    }
    check(t_.loads() || !t_.o.common().onnx.empty(),
          "Model missing: give --onnx=FILE or --loadEngine=FILE");
    check(!t_.o.build().plan_version || t_.loads(), "--getPlanVersionOnly needs --loadEngine=FILE");
    note_precision(t_);
    note_build_options(t_);
    return std::move(t_);
}

} // namespace

bool TrtexecOptions::loads() const {
    return !o.common().load_engine.empty();
}

TrtexecOptions parse_trtexec(std::span<const std::string> arguments) {
    return Parser(arguments).parse();
}

} // namespace ingot::tool
