// SPDX-License-Identifier: Apache-2.0
// The command line of trtexec: rows of api/options.def and api/trtexec_ignored.def, and what goes
// beyond one value for each option: optimisation profiles, pairs of inputs and expected outputs.
#pragma once

#include "api/options.h"
#include "ir/profile.h"

#include <array>
#include <map>
#include <set>

namespace ingot::tool {

/// What is to be said about the command line before anything runs.
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
    Options o; // the shapes, inputs and expected outputs in it are those given last
    std::vector<std::array<std::string, 3>> shape_specs; // min, opt and max of each profile
    std::vector<ReferencePair> pairs;                    // at least one, maybe empty
    std::map<std::string, int64_t> pools;                // bytes by name
    std::vector<Note> notes;
    std::set<std::string_view> given; // fields that the command line or the environment set
    std::map<std::string, std::string, std::less<>> ignored; // values of options without effect

    bool has(std::string_view field) const { return given.count(field) != 0; }
    bool loads() const; // an engine, and builds none
};

/// Reads "--name=value", "--name value" and "--flag". Errors: InvalidArgument for unknown options
/// (with the nearest name), missing and bad values, and options that contradict each other.
TrtexecOptions parse_trtexec(std::span<const std::string> arguments);

/// The sections "=== Model Options ===" to "=== Reporting Options ===", as trtexec prints them.
std::vector<std::string> option_lines(const TrtexecOptions& t);
/// What --help prints.
std::string trtexec_help();

} // namespace ingot::tool
