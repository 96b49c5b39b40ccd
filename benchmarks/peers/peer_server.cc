// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/peer_server.h"

#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>

namespace bench {
namespace {

std::string answer(const std::map<std::string, Workload>& workloads, const std::string& line) {
  std::istringstream words(line);
  std::string name;
  words >> name;
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  std::ostringstream text;
  text << std::setprecision(17) << "ok";
  for (double number : workloads.at(name)(arguments)) text << ' ' << number;
  return text.str();
}

}  // namespace

int serve(const std::map<std::string, Workload>& workloads) {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << answer(workloads, line) << std::endl;
    } catch (const std::exception& error) {
      std::cout << "error " << error.what() << std::endl;
    }
  }
  return 0;
}

std::size_t task_count(const std::vector<std::string>& arguments) { return std::stoul(arguments.at(0)); }

void verify_in_place(const double* slots, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (slots[i] != static_cast<double>(i)) throw std::runtime_error("task " + std::to_string(i) + " did not run");
  }
}

}  // namespace bench
