// holdfast_bench [--quick] DIRECTORY [NAME...]: measures on the file system of DIRECTORY, and prints a line of JSON for
// each figure. NAME: commits, device, servers, http, s3, databases, identities, backlog; without one, all of them, but
// with --quick only commits, device, servers and backlog.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>

#include "tests/bench/figures.h"
#include "tests/support/remove_tree.h"

int main(int argc, char** argv) {
  using namespace holdfast;
  Scale scale;
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "--quick") {
    scale.quick = true;
    words.erase(words.begin());
  }
  struct Kind {
    std::string name;
    void (*measure)(const Scale& scale);
    bool in_quick = true;  // where none is named; the others take longer than that may
  };
  const std::vector<Kind> all{{"commits", measure_commits},
                              {"servers", measure_servers},
                              {"http", measure_http, false},
                              {"s3", measure_s3, false},
                              {"databases", measure_databases, false},
                              {"identities", measure_identities, false},
                              {"backlog", measure_backlog},
                              {"device", measure_device_writes}};
  if (words.empty()) {
    std::fputs("holdfast_bench [--quick] DIRECTORY [commits|servers|http|s3|databases|identities|backlog|device]...\n",
               stderr);
    return 2;
  }
  scale.directory = words[0] + "/holdfast-bench";
  remove_tree(scale.directory);
  std::filesystem::create_directories(scale.directory);
  for (const Kind& kind : all) {
    const bool named = std::find(words.begin() + 1, words.end(), kind.name) != words.end();
    if (named || (words.size() == 1 && (kind.in_quick || !scale.quick))) kind.measure(scale);
  }
  remove_tree(scale.directory);
}
