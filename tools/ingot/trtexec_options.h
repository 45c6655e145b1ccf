// SPDX-License-Identifier: Apache-2.0
// The command line of trtexec: rows of api/options.def and api/trtexec_ignored.def, and options
// with more than one value: optimisation profiles, pairs of inputs and expected outputs.
#pragma once

#include "api/options.h"
#include "ir/profile.h"

#include <array>
#include <map>
#include <set>

namespace ingot::tool {

/// A note on the command line, logged before anything runs.
struct Note {
    bool warning = false;
    std::string text;
};

/// --loadInputs and --loadRefOutputs of one --refPair.
struct ReferencePair {
    std::string inputs;
    std::string outputs;
};

struct TrtexecOptions {
    Options o; // its shapes, inputs and expected outputs are the last ones given
    std::vector<std::array<std::string, 3>> shape_specs; // min, opt and max of each profile
    std::vector<ReferencePair> pairs;                    // at least one, maybe empty
    std::map<std::string, int64_t> pools;                // bytes by name
    std::vector<Note> notes;
    std::set<std::string_view> given; // fields set by the command line or the environment
    std::map<std::string, std::string, std::less<>> ignored; // values of options without effect

    bool has(std::string_view field) const { return given.count(field) != 0; }
    bool loads() const; // loads an engine, and builds none
};

/// Reads "--name=value", "--name value" and "--flag". Errors: InvalidArgument for unknown options
/// (with the nearest name), missing and bad values, and options that contradict each other.
TrtexecOptions parse_trtexec(std::span<const std::string> arguments);

/// The sections "=== Model Options ===" to "=== Reporting Options ===", as trtexec prints them.
std::vector<std::string> option_lines(const TrtexecOptions& t);
/// The text of --help.
std::string trtexec_help();

} // namespace ingot::tool
