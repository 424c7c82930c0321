// The host family's threads: many callers, nested calls, errors, fork.
#include "kernels/host/thread_pool.hpp"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <thread>

#include "../check.hpp"
#include "tcgemm/environment.hpp"
#include "tcgemm/error.hpp"

using namespace tcgemm::host;

namespace {

// Counts to `count` together with whoever comes.
int count_together(int workers, int count) {
    std::atomic<int> next{0}, done{0};
    ThreadPool::instance().run(workers, [&](int) {
        while (next.fetch_add(1) < count) done.fetch_add(1);
    });
    return done.load();
}

TEST(each_worker_runs_at_most_once_and_the_first_always) {
    for (int round = 0; round < 200; ++round) {
        std::atomic<int> calls[8] = {};
        ThreadPool::instance().run(8, [&](int worker) { calls[worker].fetch_add(1); });
        CHECK_EQ(calls[0].load(), 1);
        for (const auto& count : calls) CHECK(count.load() <= 1);
    }
}

TEST(other_threads_take_part) {
    std::atomic<int> workers{0};
    std::atomic<bool> met{false};
    ThreadPool::instance().run(2, [&](int) {
        if (workers.fetch_add(1) == 1) met = true;
        for (int i = 0; i < 5000 && !met; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    CHECK(met.load());
}

// They look on for a fraction of a millisecond after a job, then nobody takes time from others.
TEST(threads_without_work_sleep) {
    const auto cpu_ms = [] { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
    for (int round = 0; round < 3; ++round) {
        count_together(4, 100);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const double before = cpu_ms();
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        CHECK(cpu_ms() - before < 20);
    }
}

TEST(many_callers_at_once) {
    std::vector<std::thread> callers;
    std::atomic<int> wrong{0};
    for (int i = 0; i < 16; ++i) {
        callers.emplace_back([&] {
            for (int round = 0; round < 200; ++round) {
                if (count_together(4, 100) != 100) wrong.fetch_add(1);
            }
        });
    }
    for (std::thread& caller : callers) caller.join();
    CHECK_EQ(wrong.load(), 0);
}

TEST(a_call_inside_a_call) {
    std::atomic<int> sum{0};
    ThreadPool::instance().run(3, [&](int) { sum.fetch_add(count_together(3, 10) == 10 ? 0 : 1); });
    CHECK_EQ(sum.load(), 0);
}

TEST(errors_come_out_of_any_worker_and_leave_the_pool_whole) {
    for (int round = 0; round < 50; ++round) {
        CHECK_THROWS(
            std::runtime_error,
            ThreadPool::instance().run(
                4, [](int worker) { throw std::runtime_error("w" + std::to_string(worker)); }),
            "w");
        std::atomic<bool> other{false};
        CHECK_THROWS(std::runtime_error,
                     ThreadPool::instance().run(2,
                                                [&](int worker) {
                                                    if (worker == 1) {
                                                        other = true;
                                                        throw std::runtime_error("from the other");
                                                    }
                                                    while (!other) std::this_thread::yield();
                                                }),
                     "from the other");
    }
    CHECK_EQ(count_together(4, 100), 100);
}

TEST(a_forked_child_has_threads_of_its_own) {
    CHECK_EQ(count_together(4, 100), 100);
    for (int round = 0; round < 5; ++round) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);  // a child that hangs is killed
            std::atomic<int> workers{0};
            ThreadPool::instance().run(2, [&](int) {
                workers.fetch_add(1);
                while (workers < 2) std::this_thread::yield();
            });
            _exit(count_together(4, 1000) == 1000 ? 0 : 1);
        }
        int status = -1;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK_EQ(count_together(4, 100), 100);
}

TEST(the_number_of_threads_is_the_variable_or_the_affinity) {
    unsetenv("TCGEMM_NUM_THREADS");
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    CHECK_EQ(usable_threads(), CPU_COUNT(&all));
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    CHECK_EQ(usable_threads(), 1);
    CHECK_EQ(sched_setaffinity(0, sizeof(all), &all), 0);

    setenv("TCGEMM_NUM_THREADS", "7", 1);
    CHECK_EQ(usable_threads(), 7);
    for (const char* wrong :
         {"0", "-1", "two", " 3", "+3", "3 threads", "1025", "99999999999999999999"}) {
        setenv("TCGEMM_NUM_THREADS", wrong, 1);
        CHECK_THROWS(tcgemm::InvalidArgument, usable_threads(), wrong);
    }
    unsetenv("TCGEMM_NUM_THREADS");
}

TEST(what_a_thread_holds_of_the_environment_does_not_change) {
    setenv("TCGEMM_NUM_THREADS", "7", 1);
    {
        const tcgemm::HeldEnvironment held;
        setenv("TCGEMM_NUM_THREADS", "3", 1);
        CHECK_EQ(usable_threads(), 7);
        {
            const tcgemm::HeldEnvironment inner;
            CHECK_EQ(usable_threads(), 3);
        }
        CHECK_EQ(usable_threads(), 7);
        int of_another = 0;
        std::thread([&] { of_another = usable_threads(); }).join();
        CHECK_EQ(of_another, 3);
    }
    CHECK_EQ(usable_threads(), 3);
    unsetenv("TCGEMM_NUM_THREADS");
}

}  // namespace

int main() { return check::run(); }
