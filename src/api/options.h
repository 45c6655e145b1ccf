// SPDX-License-Identifier: Apache-2.0
// Options: the values of all rows of options.def, in groups. A source that reads a group includes
// api/options/<group>.h; a new row recompiles only these sources.
#pragma once

#include "api/option_rows.h"

#include <memory>

namespace ingot {

namespace options {
struct Common;
struct Build;
struct Run;
struct Measure;
struct Inspect;
struct Slim;
struct Quantize;
struct Serving;
} // namespace options

class Options {
public:
    /// Defaults.
    Options();
    Options(const Options& other);
    Options(Options&& other) noexcept;
    Options& operator=(Options other) noexcept;
    ~Options();

    std::string model; // the positional argument

#define INGOT_GROUP(Type, name)                                                                    \
    const options::Type& name() const;                                                             \
    options::Type& name();
#include "api/options/groups.def"
#undef INGOT_GROUP

private:
    struct Groups;
    std::unique_ptr<Groups> groups_;
};

} // namespace ingot
