#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/kube/pod.hpp"
#include "tests/simulate/glue.hpp"

namespace glidepod::simulate {

class World;

// One payload container as its kubelet has it.
struct Box {
  struct Instance {
    std::uint64_t id = 0;
    std::string image;  // the string in the pod when it was created
    int content = 0;
    std::int64_t restarts = 0;
    enum class Phase : std::uint8_t { running, exited } phase = Phase::running;
    kube::Termination end;
    SteadyTime finished{};
  };
  struct Pause {
    Milliseconds length{0};
    SteadyTime since{};
  };
  std::string name;
  std::string wanted;  // the image in the newest pod the kubelet was told of
  std::optional<Instance> now;
  std::optional<kube::Termination> before;  // how the instance before ended
  std::string reason, message;              // why it waits; empty: it does not
  std::map<std::string, Pause> crashes;     // CrashLoopBackOff, by image string
  std::map<std::string, Pause> pulls;       // ImagePullBackOff
  kube::Size size, in_force;                // in the newest pod that the kubelet was told of; and really
  std::unique_ptr<Glue> glue;               // of the instance, running or just gone
  bool behind = false;                      // it started again by itself, and not what the pod says by now
  std::uint64_t told = 0, shown = 0;        // statuses, in the order in which they came about

  bool runs() const { return now && now->phase == Instance::Phase::running; }
};

// Keeps the containers as the pod says: one pass (sync) at a time over the pod, and in it one container after
// another, pulls and kills included.
class Kubelet {
 public:
  static constexpr Milliseconds k_grace{30'000};
  explicit Kubelet(World& world) : world_(world) {}

  void begin();
  void told(const kube::Pod& pod);
  // The processes of a container have ended.
  void exited(Box& box, kube::Termination end);
  void restart();       // of the kubelet itself: it forgets its pauses
  void show(Box& box);  // a status of it is made, and will be seen
  std::vector<Box>& boxes() { return boxes_; }
  Box& box(int index) { return boxes_[static_cast<std::size_t>(index)]; }
  Box* find(const std::string& name);
  // It has shown a container as ended with 0, which restartPolicy OnFailure makes final: every later status
  // of the pod is an illegal transition, and is not sent.
  bool silent() const { return silent_; }
  std::uint64_t pauses() const { return pauses_; }  // how often a start had to wait for CrashLoopBackOff

 private:
  struct Task {
    enum class What : std::uint8_t { kill, start } what;
    int box = 0;
    std::string image;
  };
  void poke(Milliseconds wait);
  void resize_later();
  void resize();
  void sync();
  void work();
  bool kill(int index);                             // true: goes on later
  bool start(int index, const std::string& image);  // true: goes on later
  void create(int index, const std::string& image, int content);
  bool in_backoff(Box& box, const std::string& image);
  void wait_for(Box& box, std::string reason, std::string message);
  kube::ContainerStatus status_of(const Box& box);
  World& world_;
  std::vector<Box> boxes_;
  std::deque<Task> tasks_;
  bool busy_ = false, again_ = false, unhappy_ = false, silent_ = false, retrying_ = false;
  int killing_ = -1;  // the box whose end the pass waits for
  std::uint64_t last_instance_ = 0, pauses_ = 0;
  std::uint64_t generation_ = 0;  // of the kubelet's own process
};

}  // namespace glidepod::simulate
