// SPDX-License-Identifier: Apache-2.0
#include "workflow/serving/supervisor.h"

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/reload_request.h"
#include "base/socket.h"
#include "workflow/serving/http.h"

#include <algorithm>
#include <csignal>
#include <thread>

namespace ingot::serving {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds tick{20};
constexpr milliseconds check_interval_at_start{100};
constexpr milliseconds check_interval{500};
constexpr double check_seconds = 1;
constexpr seconds stop_margin{5};

/// A program that is started again when it ends.
struct Guarded {
    Guarded(std::string called, ChildCommand started, const RestartRules& rules)
        : name(std::move(called)), command(std::move(started)), policy(rules) {}

    std::string name;
    ChildCommand command;
    RestartPolicy policy;
    std::optional<ChildProcess> child;
    Clock::time_point start_at; // the next start, while there is no child
    bool given_up = false;
    // For workers alone.
    int64_t http = 0;
    Clock::time_point check_at;
    std::optional<Clock::time_point> last_health; // since the last start
    bool is_replaced = false;                     // it was told to end: no death
};

std::string how_it_ended(int code) {
    std::string out = code > 128 ? str("by signal ", code - 128) : str("with exit code ", code);
    return out + (code == 86 ? " (device lost)" : code == 87 ? " (a run did not end)" : "");
}

std::string in_seconds(milliseconds time) {
    return str(static_cast<double>(time.count()) / 1000);
}

/// Restarts of all workers, one after the other: the one whose turn it is gets no new requests,
/// finishes those in flight, ends, and is back before the next one's turn.
struct Turn {
    size_t worker = 0;
    enum class Phase { Waiting, Draining, Starting } phase = Phase::Waiting;
    Clock::time_point limit; // of Draining, and of the old process in Starting
};

class Supervisor {
public:
    explicit Supervisor(const SuperviseRequest& request)
        : request_(request), plan_(request.plan),
          proxy_("the proxy", proxy_command(plan_), request.rules) {
        for (size_t i = 0; i < plan_.workers.size(); ++i) {
            workers_.emplace_back(str("worker ", i), worker_command(plan_, i), request.rules);
            workers_.back().http = plan_.workers[i].http;
        }
    }

    void run() {
        write_files(plan_, false);
        write_state();
        watch_reload_requests();
        try {
            for (;;) {
                check_interrupt();
                step();
                std::this_thread::sleep_for(tick);
            }
        } catch (const Error& e) {
            bool asked = e.code() == ErrorCode::Interrupted;
            request_.told(asked ? "stopping: no new connections, requests in flight finish"
                                : "stopping");
            stop();
            if (!asked) {
                throw;
            }
        }
    }

private:
    void step() {
        for (size_t i = 0; i < workers_.size(); ++i) {
            if (advance(workers_[i])) {
                take_out(i);
            }
            if (workers_[i].child) {
                check_health(workers_[i]);
            }
        }
        require(std::any_of(workers_.begin(), workers_.end(),
                            [](const Guarded& w) { return !w.given_up; }),
                ErrorCode::Device, "no worker is left: each died ", request_.rules.deaths,
                " times within ", in_seconds(request_.rules.window), " s; what they say is above");
        if (proxy_.child || proxy_runs_ ||
            std::any_of(workers_.begin(), workers_.end(),
                        [](const Guarded& w) { return w.last_health.has_value(); })) {
            advance_proxy();
        }
        if (take_reload_request() && !turn_) {
            request_.told("each worker starts anew, one after the other");
            turn_.emplace();
        }
        if (turn_) {
            advance_turn();
        }
    }

    void advance_turn() {
        if (turn_->worker == workers_.size()) {
            turn_.reset();
            request_.told("each worker has started anew");
            return;
        }
        size_t index = turn_->worker;
        Guarded& w = workers_[index];
        Clock::time_point now = Clock::now();
        if (turn_->phase == Turn::Phase::Waiting) {
            if (w.given_up) {
                turn_->worker++;
            } else if (proxy_.child && others_serve(index)) {
                tell_proxy(index, "drain");
                turn_->phase = Turn::Phase::Draining;
                turn_->limit = now + seconds(plan_.drain_seconds);
            }
        } else if (turn_->phase == Turn::Phase::Draining) {
            if (!w.child || now > turn_->limit || !has_requests(index)) {
                w.is_replaced = w.child.has_value();
                if (w.child) {
                    w.child->send(SIGTERM);
                }
                w.last_health.reset();
                turn_->phase = Turn::Phase::Starting;
                turn_->limit = now + stop_margin;
            }
        } else if (w.is_replaced && w.child && now > turn_->limit) {
            w.child->send(SIGKILL); // nothing is in flight; it waits for idle connections
        } else if (w.given_up || (w.last_health && !w.is_replaced)) {
            tell_proxy(index, "ready");
            *turn_ = {index + 1, Turn::Phase::Waiting, now};
        }
    }

    /// The proxy's figures of a worker: for each of its backends a row of columns, as "show stat"
    /// has them. Empty where it does not answer.
    std::vector<std::vector<std::string>> proxy_rows(size_t worker) const {
        std::vector<std::vector<std::string>> out;
        try {
            std::string table = exchange_local(plan_.proxy_socket(), "show stat\n", check_seconds);
            for (const char* backend : {"http_workers", "grpc_workers"}) {
                size_t at = table.find(str("\n", backend, ",w", worker, ","));
                if (at != std::string::npos) {
                    out.push_back(split(table.substr(at + 1, table.find('\n', at + 1) - at - 1)));
                }
            }
        } catch (const Error& e) {
            if (e.code() == ErrorCode::Interrupted) {
                throw;
            }
        }
        return out;
    }

    static std::vector<std::string> split(const std::string& row) {
        std::vector<std::string> out;
        for (size_t at = 0; at <= row.size();) {
            size_t end = std::min(row.find(',', at), row.size());
            out.push_back(row.substr(at, end - at));
            at = end + 1;
        }
        return out;
    }

    /// Whether the proxy has given a worker requests that are not answered yet.
    bool has_requests(size_t worker) const {
        constexpr size_t sessions = 4;
        std::vector<std::vector<std::string>> rows = proxy_rows(worker);
        return std::any_of(rows.begin(), rows.end(), [](const std::vector<std::string>& row) {
            return row.size() > sessions && row[sessions] != "0";
        });
    }

    /// Whether the proxy gives a worker requests: its checks find a worker later than ours do.
    bool is_in_proxy(size_t worker) const {
        constexpr size_t status = 17;
        std::vector<std::vector<std::string>> rows = proxy_rows(worker);
        return !rows.empty() &&
               std::all_of(rows.begin(), rows.end(), [](const std::vector<std::string>& row) {
                   return row.size() > status && row[status].starts_with("UP");
               });
    }

    /// Whether all workers but this one answer requests.
    bool others_serve(size_t worker) const {
        for (size_t i = 0; i < workers_.size(); ++i) {
            bool serves = workers_[i].last_health && is_in_proxy(i);
            if (i != worker && !workers_[i].given_up && !serves) {
                return false;
            }
        }
        return true;
    }

    void advance_proxy() {
        bool had_child = proxy_.child.has_value();
        require(!advance(proxy_), ErrorCode::Io, "the proxy is given up: it died ",
                request_.rules.deaths, " times within ", in_seconds(request_.rules.window),
                " s; what it says is above");
        if (proxy_.child && had_child) {
            proxy_.policy.note_health(Clock::now()); // it has no other work than to run
        }
        if (proxy_.child && !proxy_runs_ && proxy_answers()) {
            proxy_runs_ = true;
            request_.told(str("ready: HTTP on ", plan_.address, ":", plan_.http, ", gRPC on ",
                              plan_.address, ":", plan_.grpc, ", metrics on ", plan_.address, ":",
                              plan_.metrics, "/metrics"));
        }
    }

    /// Its control socket is there once all of its ports are.
    bool proxy_answers() const {
        try {
            return !exchange_local(plan_.proxy_socket(), "show info\n", check_seconds).empty();
        } catch (const Error& e) {
            if (e.code() == ErrorCode::Interrupted) {
                throw;
            }
            return false;
        }
    }

    /// Notes a death, starts what is due. Returns whether it has just been given up.
    bool advance(Guarded& g) {
        Clock::time_point now = Clock::now();
        if (std::optional<int> code = g.child ? g.child->exit_code() : std::nullopt) {
            g.child.reset();
            g.last_health.reset();
            if (std::exchange(g.is_replaced, false)) {
                g.start_at = now;
                return false;
            }
            std::optional<milliseconds> delay = g.policy.note_death(now);
            g.given_up = !delay;
            request_.told(str(g.name, " ended ", how_it_ended(*code),
                              delay ? str("; it starts again in ", in_seconds(*delay), " s")
                                    : std::string("; it is given up")));
            g.start_at = now + delay.value_or(milliseconds(0));
            write_state();
            return g.given_up;
        }
        if (!g.child && !g.given_up && now >= g.start_at) {
            g.child = ChildProcess::start(g.command);
            g.check_at = now;
        }
        return false;
    }

    void check_health(Guarded& w) {
        Clock::time_point now = Clock::now();
        if (now < w.check_at) {
            return;
        }
        try {
            bool alive =
                http_get(str("http://127.0.0.1:", w.http), "/v2/health/live", check_seconds)
                    .status == 200;
            if (alive && !w.last_health) {
                request_.told(str(w.name, " is up, process ", w.child->id()));
            }
            if (alive) {
                w.last_health = now;
                w.policy.note_health(now);
            }
        } catch (const Error& e) {
            if (e.code() == ErrorCode::Interrupted) {
                throw;
            }
        }
        w.check_at = now + (w.last_health ? check_interval : check_interval_at_start);
        if (w.last_health && now - *w.last_health > request_.silence) {
            request_.told(str(w.name, " has not answered for ", request_.silence.count(),
                              " s and is killed"));
            w.child->send(SIGKILL);
        }
    }

    /// The proxy no longer tries a worker, nor after a restart of its own.
    void take_out(size_t worker) {
        plan_.workers[worker].given_up = true;
        write_file(plan_.proxy_file(), proxy_config(plan_));
        tell_proxy(worker, "maint");
    }

    void tell_proxy(size_t worker, std::string_view state) const {
        for (const char* backend : {"http_workers", "grpc_workers"}) {
            try {
                exchange_local(plan_.proxy_socket(),
                               str("set server ", backend, "/w", worker, " state ", state, "\n"),
                               check_seconds);
            } catch (const Error& e) { // its checks say the same, a little later
                log(LogLevel::Info, "the proxy was not told: ", e.what());
            }
        }
    }

    /// For the page of metrics.
    void write_state() const {
        std::string deaths = "# HELP ingot_serve_worker_deaths Times that the worker has ended\n"
                             "# TYPE ingot_serve_worker_deaths counter\n";
        std::string given_up = "# HELP ingot_serve_worker_given_up 1 once it is not started again\n"
                               "# TYPE ingot_serve_worker_given_up gauge\n";
        for (size_t i = 0; i < workers_.size(); ++i) {
            append(deaths, str("ingot_serve_worker_deaths{worker=\"", i, "\"} ",
                               workers_[i].policy.deaths(), "\n"));
            append(given_up, str("ingot_serve_worker_given_up{worker=\"", i, "\"} ",
                                 workers_[i].given_up ? 1 : 0, "\n"));
        }
        write_file(plan_.state_file(), deaths + given_up);
    }

    static bool ended(Guarded& g) { return !g.child || g.child->exit_code().has_value(); }

    /// Waits until the programs have ended, and kills those that have not by then.
    static void wait_for_end(std::vector<Guarded*> programs, seconds limit) {
        Clock::time_point end = Clock::now() + limit;
        while (Clock::now() < end && !std::all_of(programs.begin(), programs.end(),
                                                  [](Guarded* g) { return ended(*g); })) {
            std::this_thread::sleep_for(tick);
        }
        for (Guarded* g : programs) {
            g->child.reset();
        }
    }

    void stop() {
        seconds limit(plan_.drain_seconds);
        if (proxy_.child) {
            proxy_.child->send(SIGUSR1);
        }
        wait_for_end({&proxy_}, limit + stop_margin);
        std::vector<Guarded*> all;
        for (Guarded& w : workers_) {
            all.push_back(&w);
            if (w.child) {
                w.child->send(SIGTERM);
            }
        }
        wait_for_end(all, limit + stop_margin);
        request_.told("stopped");
    }

    const SuperviseRequest& request_;
    ServePlan plan_;
    std::vector<Guarded> workers_;
    Guarded proxy_;
    bool proxy_runs_ = false;
    std::optional<Turn> turn_;
};

} // namespace

void supervise(const SuperviseRequest& request) {
    Supervisor(request).run();
}

} // namespace ingot::serving
