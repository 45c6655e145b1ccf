// SPDX-License-Identifier: Apache-2.0
// Host policies: an instance's threads stay on the cores to which the server keeps the thread that
// makes it.
#include "base/cpus.h"
#include "plugins/triton/host_policy.h"
#include "tests/triton/scene.h"

#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace ingot::triton {
namespace {

/// Threads of this process by their number, with the CPUs that they may use: "0-3".
std::map<std::string, std::string> threads() {
    std::map<std::string, std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream status(entry.path() / "status");
        for (std::string line; std::getline(status, line);) {
            constexpr std::string_view field = "Cpus_allowed_list:\t";
            if (line.starts_with(field)) {
                out[entry.path().filename().string()] = line.substr(field.size());
            }
        }
    }
    return out;
}

/// Cores of threads that are there now and were not before, in order.
std::vector<std::string> new_threads(const std::map<std::string, std::string>& before) {
    std::vector<std::string> out;
    for (const auto& [id, cores] : threads()) {
        if (before.count(id) == 0) {
            out.push_back(cores);
        }
    }
    return out;
}

/// Returns once a joined thread is gone from /proc. A list of threads read while one of them dies
/// can end there: the kernel finds no next thread.
void wait_until_gone(pid_t joined) {
    while (std::filesystem::exists("/proc/self/task/" + std::to_string(joined))) {
        std::this_thread::yield();
    }
}

/// Makes an instance as the server does: the thread that makes it is kept to the policy's core, and
/// ends then.
class PlacedInstance {
public:
    PlacedInstance(Scene& scene, const std::string& name, const std::string& policy, int core) {
        instance_.model = &scene.model;
        instance_.name = name;
        instance_.policy.json = policy;
        pid_t maker = 0;
        std::thread([&] {
            maker = gettid();
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(static_cast<size_t>(core), &one);
            sched_setaffinity(0, sizeof one, &one);
            text_ = text_of(TRITONBACKEND_ModelInstanceInitialize(&instance_));
        }).join();
        wait_until_gone(maker);
    }
    ~PlacedInstance() {
        if (instance_.state != nullptr) {
            EXPECT_EQ(text_of(TRITONBACKEND_ModelInstanceFinalize(&instance_)), "");
        }
    }
    PlacedInstance(const PlacedInstance&) = delete;
    PlacedInstance& operator=(const PlacedInstance&) = delete;
    const std::string& text() const { return text_; }
    void run(int64_t rows) {
        auto request = row_request(rows, 1);
        TRITONBACKEND_Request* list[] = {request.get()};
        EXPECT_EQ(text_of(TRITONBACKEND_ModelInstanceExecute(&instance_, list, 1)), "");
        expect_right(*request);
    }

private:
    TRITONBACKEND_ModelInstance instance_;
    std::string text_;
};

std::string policy(const std::string& name, int core) {
    return R"({")" + name + R"(":{"cpu-cores":")" + std::to_string(core) + "-" +
           std::to_string(core) + R"("}})";
}

TEST(TritonHostPolicy, ThreadsOfAnInstanceStayOnItsCores) {
    std::vector<int> cpus = usable_cpus();
    if (cpus.size() < 2) {
        GTEST_SKIP() << "one CPU: there is nothing to choose from";
    }
    // Two threads an engine, whatever the cores are: the caller and one more.
    Scene scene(row_engine(0), R"({"max_batch_size":4000,"parameters":{
        "threads":{"string_value":"2"},"buckets":{"string_value":"1,4000"}}})");
    ASSERT_EQ(scene.start(0), "");
    auto before = threads();
    std::string first = std::to_string(cpus.front());
    std::string last = std::to_string(cpus.back());
    PlacedInstance a(scene, "a", policy("first", cpus.front()), cpus.front());
    ASSERT_EQ(a.text(), "");
    EXPECT_EQ(new_threads(before), std::vector<std::string>{first});
    before = threads();
    PlacedInstance b(scene, "b", policy("last", cpus.back()), cpus.back());
    ASSERT_EQ(b.text(), "");
    EXPECT_EQ(new_threads(before), std::vector<std::string>{last});
    before = threads();
    PlacedInstance c(scene, "c", policy("last", cpus.back()), cpus.back()); // shares b's engine
    ASSERT_EQ(c.text(), "");
    EXPECT_EQ(new_threads(before), std::vector<std::string>{});
    for (PlacedInstance* one : {&a, &b, &c}) {
        one->run(3000);
    }
    std::string logged = FakeHost::get().logged();
    EXPECT_NE(logged.find("instance 'a' is ready on the CPU, 2 batch sizes prepared; host policy "
                          "'first': cores " +
                          first + "-" + first + "\n"),
              std::string::npos)
        << logged;
}

TEST(TritonHostPolicy, InstancesOfOnePolicyShareItsCores) {
    std::vector<int> cpus = usable_cpus();
    // Two instances of a policy of one core: one thread each, so that none is started.
    Scene scene(row_engine(8), R"({"instance_group":[
        {"kind":"KIND_CPU","count":2,"host_policy":"one"}]})");
    ASSERT_EQ(scene.start(0), "");
    auto before = threads();
    PlacedInstance a(scene, "a", policy("one", cpus.front()), cpus.front());
    ASSERT_EQ(a.text(), "");
    EXPECT_EQ(new_threads(before), std::vector<std::string>{});
    a.run(5);
}

struct Said {
    const char* policy;
    const char* cores;
    const char* node;
    const char* note;
};

TEST(TritonHostPolicy, SettingsAreReadAndAPolicyWithoutAnyIsNamed) {
    const Said cases[] = {
        {R"({"cpu":{}})", "", "", ""},
        {R"({"gpu_0":{}})", "", "", ""},
        {R"({"a":{"cpu-cores":"0-3,8-11","numa-node":"1"}})", "0-3,8-11", "1", ""},
        {R"({"a":{"numa-node":"0"}})", "", "0", ""},
        {R"({"a":{}})", "", "",
         "the host policy 'a' has no settings: the server gets them by --host-policy=a,cpu-cores="
         "0-3 and --host-policy=a,numa-node=0"},
    };
    for (const Said& c : cases) {
        SCOPED_TRACE(c.policy);
        TRITONBACKEND_ModelInstance instance;
        instance.policy.json = c.policy;
        HostPolicy found = read_host_policy(&instance);
        EXPECT_EQ(found.cores, c.cores);
        EXPECT_EQ(found.node, c.node);
        EXPECT_EQ(found.note, c.note);
    }
}

TEST(TritonHostPolicy, OneThatIsNoneIsRefused) {
    Scene scene(row_engine(8));
    ASSERT_EQ(scene.start(0), "");
    for (const char* text : {"[]", "{}", R"({"a":1})", R"({"a":{},"b":{}})", "none"}) {
        TRITONBACKEND_ModelInstance instance;
        instance.model = &scene.model;
        instance.policy.json = text;
        EXPECT_EQ(text_of(TRITONBACKEND_ModelInstanceInitialize(&instance)),
                  std::string("3 instance 'model_0': the host policy is ") + text +
                      ", expected one name with its settings");
    }
}

} // namespace
} // namespace ingot::triton
