#include "provisioner/simulate/plot.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace glidepod::provisioner {

namespace {

std::string hours(Seconds at) {
  return fmt::format("{:d}:{:02d}", at.count() / 3600, at.count() / 60 % 60);
}

std::int64_t pods(const Sample& s) {
  return s.claimed + s.unmatched + s.waiting + s.broken;
}

// One curve of so many points at most; y grows downwards in SVG.
std::string curve(const std::vector<Sample>& samples, double (*value)(const Sample&), double most, int top,
                  int height, int width, const char* colour) {
  constexpr std::size_t k_most = 240;
  std::string points;
  const auto last = static_cast<double>(std::max<std::int64_t>(samples.back().at.count(), 1));
  for (std::size_t i = 0; i < samples.size(); i += samples.size() / k_most + 1) {
    const auto& s = samples[i];
    points += fmt::format("{:.1f},{:.1f} ", 60 + width * static_cast<double>(s.at.count()) / last,
                          top + height - height * value(s) / most);
  }
  return fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"{}\"/>\n", colour,
                     points);
}

}  // namespace

std::string to_csv(const std::vector<Sample>& samples) {
  std::string result =
      "seconds,idle_jobs,jobs_done,waiting,unmatched,claimed,broken,submitted,wasted_pods,used_hours,idle_"
      "hours,hungry_least,hungry_most\n";
  for (const auto& s : samples)
    result += fmt::format("{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{},{}\n", s.at.count(), s.idle, s.done,
                          s.waiting, s.unmatched, s.claimed, s.broken, s.submitted, s.wasted_pods,
                          s.used_hours, s.idle_hours, s.hungry_least, s.hungry_most);
  return result;
}

std::string to_table(const std::vector<Sample>& samples, std::size_t rows) {
  constexpr std::int64_t k_bar = 50;
  std::int64_t most = 1;
  for (const auto& s : samples) most = std::max(most, pods(s));
  std::string result =
      fmt::format("{:>6} {:>8} {:>8} {:>8} {:>9} {:>8} {:>7} {:>10} {:>7}\n", "time", "idle", "done",
                  "waiting", "unmatched", "claimed", "broken", "submitted", "wasted");
  const auto step = std::max<std::size_t>(samples.size() / std::max<std::size_t>(rows, 1), 1);
  for (std::size_t i = 0; i < samples.size(); i += step) {
    const auto& s = samples[i];
    const auto bar = [most](std::int64_t count, char c) {
      return std::string(static_cast<std::size_t>((count * k_bar + most - 1) / most), c);
    };
    result +=
        fmt::format("{:>6} {:>8} {:>8} {:>8} {:>9} {:>8} {:>7} {:>10} {:>7} {}{}{}{}\n", hours(s.at), s.idle,
                    s.done, s.waiting, s.unmatched, s.claimed, s.broken, s.submitted, s.wasted_pods,
                    bar(s.claimed, '#'), bar(s.unmatched, 'o'), bar(s.waiting, '.'), bar(s.broken, 'x'));
  }
  const auto& last = samples.back();
  const auto total = last.used_hours + last.idle_hours;
  result += fmt::format(
      "# claimed  o unmatched  . waiting  x broken\n{} jobs done by {} pods, {} of them wasted; "
      "{:.1f} pod hours with a job, {:.1f} without ({:.1f} %)\n",
      last.done, last.submitted, last.wasted_pods, last.used_hours, last.idle_hours,
      total > 0 ? 100 * last.idle_hours / total : 0.0);
  return result;
}

std::string to_svg(const std::vector<Sample>& samples) {
  constexpr int k_width = 800, k_height = 160;
  struct Curve {
    const char *name, *colour;
    double (*value)(const Sample&);
  };
  static constexpr auto number = [](std::int64_t n) { return static_cast<double>(n); };
  const std::vector<std::vector<Curve>> panels = {
      {{"idle jobs", "#888", [](const Sample& s) { return number(s.idle); }}},
      {{"claimed pods", "#2a7", [](const Sample& s) { return number(s.claimed); }},
       {"unmatched", "#e90", [](const Sample& s) { return number(s.unmatched); }},
       {"waiting", "#27c", [](const Sample& s) { return number(s.waiting); }},
       {"broken", "#c22", [](const Sample& s) { return number(s.broken); }}},
      {{"pods with a job of owners whose jobs wait: who has most", "#2a7",
        [](const Sample& s) { return number(s.hungry_most); }},
       {"who has least", "#c22", [](const Sample& s) { return number(s.hungry_least); }}},
      {{"pod hours without a job", "#e90", [](const Sample& s) { return s.idle_hours; }},
       {"wasted pods", "#c22", [](const Sample& s) { return number(s.wasted_pods); }}}};
  std::string result = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      k_width + 80, static_cast<int>(panels.size()) * (k_height + 50) + 20);
  int top = 30;
  for (const auto& panel : panels) {
    double most = 1;
    for (const auto& c : panel)
      for (const auto& s : samples) most = std::max(most, c.value(s));
    result +=
        fmt::format("<rect x=\"60\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#ccc\"/>\n",
                    top, k_width, k_height);
    result += fmt::format("<text x=\"55\" y=\"{}\" text-anchor=\"end\">{:.0f}</text>\n", top + 10, most);
    result += fmt::format("<text x=\"55\" y=\"{}\" text-anchor=\"end\">0</text>\n", top + k_height);
    int x = 60;
    for (const auto& c : panel) {
      result += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n", x, top - 6, c.colour, c.name);
      x += 30 + 7 * static_cast<int>(std::string_view(c.name).size());
      result += curve(samples, c.value, most, top, k_height, k_width, c.colour);
    }
    result += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{} h</text>\n", 60 + k_width,
                          top + k_height + 14, hours(samples.back().at));
    top += k_height + 50;
  }
  return result + "</svg>\n";
}

}  // namespace glidepod::provisioner
