// holdfast_bench [--quick] DIRECTORY [NAME...]: measures on the file system of DIRECTORY, and prints a line of JSON for
// each figure. NAME: commits, device, servers, http, s3, databases, identities, backlog; without one, all of them.
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
  const std::vector<std::pair<std::string, void (*)(const Scale&)>> all{
      {"commits", measure_commits}, {"servers", measure_servers},     {"http", measure_http},
      {"s3", measure_s3},           {"databases", measure_databases}, {"identities", measure_identities},
      {"backlog", measure_backlog}, {"device", measure_device_writes}};
  if (words.empty()) {
    std::fputs("holdfast_bench [--quick] DIRECTORY [commits|servers|http|s3|databases|identities|backlog|device]...\n",
               stderr);
    return 2;
  }
  scale.directory = words[0] + "/holdfast-bench";
  remove_tree(scale.directory);
  std::filesystem::create_directories(scale.directory);
  for (const auto& [name, measure] : all) {
    if (words.size() == 1 || std::find(words.begin() + 1, words.end(), name) != words.end()) measure(scale);
  }
  remove_tree(scale.directory);
}
