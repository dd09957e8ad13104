// SPDX-License-Identifier: Apache-2.0
// Counts the words of a file, with more copies of them than it needs.
//
// usage: words FILE [TIMES]
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using Counts = std::map<std::string, int>;

static std::vector<std::string> split(const std::string &line)
{
    std::istringstream stream(line);
    std::vector<std::string> words;
    std::string word;

    while (stream >> word)
        words.push_back(word);
    return words;
}

// By value, where a reference would do.
static void count(Counts &counts, std::vector<std::string> words)
{
    for (const auto &word : words)
        counts[word]++;
}

static Counts count_file(const char *path)
{
    std::ifstream file(path);
    std::string line;
    Counts counts;

    while (std::getline(file, line))
        count(counts, split(line));
    return counts;
}

int main(int argc, char **argv)
{
    int times = argc > 2 ? std::atoi(argv[2]) : 1;
    Counts counts;

    if (argc < 2) {
        std::cerr << "usage: words FILE [TIMES]\n";
        return 2;
    }
    for (int i = 0; i < times; i++)
        counts = count_file(argv[1]);
    auto most = std::max_element(counts.begin(), counts.end(),
                                 [](auto &a, auto &b) { return a.second < b.second; });
    if (most != counts.end())
        std::cout << counts.size() << " words, most often " << most->first << "\n";
    return 0;
}
