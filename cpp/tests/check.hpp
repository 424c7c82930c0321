// The whole test framework: TEST bodies that run in order, checks that report and go on.
#pragma once

#include <cstdio>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

namespace check {

struct Test {
    const char* name;
    void (*body)();
};
inline std::vector<Test>& tests() {
    static std::vector<Test> list;
    return list;
}
inline int& failures() {
    static int count = 0;
    return count;
}
inline bool add(const char* name, void (*body)()) {
    tests().push_back({name, body});
    return true;
}
inline void fail(const char* file, int line, const std::string& what) {
    ++failures();
    std::printf("%s:%d: %s\n", file, line, what.c_str());
}
template <class A, class B>
void equal(const A& a, const B& b, const char* text, const char* file, int line) {
    if (a == b) return;
    std::ostringstream message;
    message << text << ": " << a << " and " << b;
    fail(file, line, message.str());
}
// `call` has to throw an Exception whose text contains `part`.
template <class Exception, class Call>
void throws(const Call& call, const std::string& part, const char* text, const char* file,
            int line) {
    try {
        call();
    } catch (const Exception& error) {
        if (std::string(error.what()).find(part) == std::string::npos) {
            fail(file, line, std::string(text) + " says \"" + error.what() + "\", not " + part);
        }
        return;
    } catch (const std::exception& error) {
        return fail(file, line, std::string(text) + " throws another class: " + error.what());
    }
    fail(file, line, std::string(text) + " does not throw");
}
inline int run() {
    int failed = 0;
    for (const Test& test : tests()) {
        const int before = failures();
        try {
            test.body();
        } catch (const std::exception& error) {
            fail(test.name, 0, std::string("unexpected exception: ") + error.what());
        }
        const bool ok = failures() == before;
        failed += ok ? 0 : 1;
        std::printf("%s %s\n", ok ? "ok    " : "FAILED", test.name);
    }
    std::printf("%d passed, %d failed\n", static_cast<int>(tests().size()) - failed, failed);
    return failed == 0 && !tests().empty() ? 0 : 1;
}

}  // namespace check

#define TEST(name)                                                             \
    static void name();                                                        \
    [[maybe_unused]] static const bool name##_added = check::add(#name, name); \
    static void name()
#define CHECK(condition) \
    ((condition) ? void() : check::fail(__FILE__, __LINE__, "CHECK(" #condition ")"))
#define CHECK_EQ(a, b) check::equal(a, b, #a " == " #b, __FILE__, __LINE__)
#define CHECK_THROWS(Exception, expression, part) \
    check::throws<Exception>([&] { (void)(expression); }, part, #expression, __FILE__, __LINE__)
