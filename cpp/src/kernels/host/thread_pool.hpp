// Threads that wait for work between calls. A call's own thread always takes part, so that a call
// completes however busy the pool is: any number of callers, nested calls, or no thread at all.
//
// To wake a thread takes 5 us, and on virtual machines hundreds. So both a thread without work and
// a call that waits for others look on for a while before they sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

namespace tcgemm::host {

inline constexpr int kMaxThreads = 1024;

// Threads that one call may use, of `most` that are worth it: TCGEMM_NUM_THREADS, or the CPUs that
// this process may run on. Read at every call; the system is not asked for one thread. Throws
// InvalidArgument where the variable is no whole number from 1 to kMaxThreads.
int usable_threads(int most = kMaxThreads);

class ThreadPool {
   public:
    // The pool of this process. A child made by fork() gets a new one: it has its parent's memory
    // but not its threads. Never destroyed, so that exit() waits for nothing.
    static ThreadPool& instance();

    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    // Calls body(0) on this thread, and each of body(1) .. body(workers - 1) at most once on
    // another one while body(0) runs: bodies share the work out among those that came. Returns when
    // all that began have ended, and throws the first exception that one of them threw.
    void run(int workers, const std::function<void(int worker)>& body);

   private:
    struct Job {
        const std::function<void(int)>* body;
        int next_worker;
        int end_worker;
        std::atomic<int> running;  // written under the lock
        std::exception_ptr error;
        std::condition_variable ended;
    };

    ThreadPool();
    void start_threads(int count);
    void serve();

    const int process_;  // the pid that the threads live in
    std::mutex mutex_;   // guards everything below, and the jobs
    std::condition_variable work_;
    std::vector<Job*> jobs_;  // those with bodies that nobody took yet
    int threads_ = 0;
    std::atomic<unsigned> posted_{0};  // jobs so far; written under the lock
};

}  // namespace tcgemm::host
