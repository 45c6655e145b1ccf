// SPDX-License-Identifier: Apache-2.0
// Programs that run beside this one and end with it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ingot {

struct ChildCommand {
    std::vector<std::string> arguments; // the first is the program's path
    /// Added to this process's environment, or put in place of what it has.
    std::vector<std::pair<std::string, std::string>> environment;
    std::vector<int> cpus; // that it may use; empty: as this process
};

/// A running program. It has a process group of its own, so that Ctrl-C in a terminal does not
/// reach it, an empty standard input, and this process's stderr for all that it prints. The system
/// sends it SIGTERM when the thread that started it ends. Used by one thread.
class ChildProcess {
public:
    /// Errors: Io when the program cannot be started; the message names it.
    static ChildProcess start(const ChildCommand& command);
    /// Kills the program if it still runs, and waits for its end.
    ~ChildProcess();
    ChildProcess(ChildProcess&& other) noexcept;
    ChildProcess& operator=(ChildProcess&& other) noexcept;

    int id() const { return id_; }
    /// Nothing while it runs; then its exit code, or 128 and the number of the signal that ended
    /// it. Does not wait.
    std::optional<int> exit_code();
    /// Does nothing when it has ended.
    void send(int signal) noexcept;

private:
    explicit ChildProcess(int id) : id_(id) {}
    int id_ = -1;
    std::optional<int> code_;
};

/// The path of a program: `name` itself when it has a slash, else the first file on PATH that may
/// be executed; "" when there is none.
std::string find_program(const std::string& name);

} // namespace ingot
