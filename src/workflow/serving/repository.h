// SPDX-License-Identifier: Apache-2.0
// A model repository of Triton Inference Server, and how a version gets into it whole or not at
// all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ingot::serving {

/// A model's folder as it is found.
struct ModelFolder {
    std::string path;
    bool exists = false;
    std::optional<std::string> config; // the text of config.pbtxt
    std::vector<int64_t> versions;     // growing
    std::optional<int64_t> served;     // what the configuration serves, else the highest

    /// Whether config.pbtxt is there and somebody else's.
    bool has_foreign_config() const;
    /// The model's file of a version; "" where there is none that this command knows.
    std::string file_of(int64_t version) const;
};
/// Errors: Io for a repository that is no folder, InvalidArgument for a name that cannot be one.
ModelFolder read_model_folder(const std::string& repository, const std::string& name);

/// A version on its way. A server sees it from one step on, in commit(): for a new model
/// the rename of its folder, else the rename of config.pbtxt, which names the version it serves. A
/// process that is killed before leaves a folder that no server looks at.
class Publication {
public:
    /// \param staging folder for a new model's folder; "": beside the repository.
    /// \param tidy whether what killed processes have left may be removed: nobody else publishes.
    Publication(const std::string& repository, const std::string& name, int64_t version,
                const std::string& staging, bool tidy);
    /// Removes what was not committed.
    ~Publication();
    Publication(const Publication&) = delete;
    Publication& operator=(const Publication&) = delete;

    /// Where the engine is to be written.
    const std::string& file() const { return file_; }
    /// Publishes. Errors: Io; nothing is published then.
    void commit(const std::string& config);
    /// Puts back what was there before commit().
    void undo();

private:
    ModelFolder before_;
    int64_t version_;
    std::string partial_; // the folder that is put together: of the version, or of a new model
    std::string file_;
    bool committed_ = false;
};

/// Removes all but the `keep` highest versions and the served one; returns the removed. Each
/// disappears in one step.
std::vector<int64_t> prune(const ModelFolder& folder, int64_t keep);

} // namespace ingot::serving
