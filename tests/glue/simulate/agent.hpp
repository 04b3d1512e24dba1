#pragma once

#include <deque>
#include <string>

#include "lib/wire/channel.hpp"

namespace glidepod::glue::simulate {

class World;

// The pilot's agent: there or not, and asking for anything at any moment.
class Agent {
 public:
  explicit Agent(World& world) : world_(world) {}
  void begin();

  // glue's side
  // A connection's descriptor, or the error.
  Result<Fd> connect();
  bool is_stranger() const { return stranger_; }
  bool connected(int fd) const { return connection_ == fd; }
  bool is_connected() const { return connection_ >= 0; }
  void glue_closed();
  void receive(wire::Type type, const std::string& body);
  bool ready(int fd) const { return connection_ == fd && (closed_ || !to_glue_.empty()); }
  // The next frame for glue; nothing more: the end, or nothing yet.
  bool take(wire::Frame* frame);
  bool closed() const { return closed_; }
  bool reads() const { return reads_; }
  // What glue has said last was read, or glue has waited for that as long as it does.
  bool has_read() const { return connection_ < 0 || closed_ || !unread_ || waited_for_; }
  void waited_for() { waited_for_ = !reads_; }
  bool appeared() const { return appeared_; }  // seen by who watches the folder
  void looked() { appeared_ = false; }

 private:
  void step();
  void act();
  void wind_up();
  void appear();
  void read(bool does);
  void hang_up();
  void launch();
  int streams();
  void clear();
  void beat();
  template <typename Message>
  void send(const Message& message, int fds = 0);

  void put(wire::Type type, std::string body, int fds);

  World& world_;
  int steps_ = 0;
  bool listens_ = false, appeared_ = false, stranger_ = false, reads_ = true, closed_ = false;
  bool unread_ = false, waited_for_ = false;
  int connection_ = -1;
  std::deque<wire::Frame> to_glue_;
  std::uint64_t last_job_ = 0, last_beat_ = 0, last_session_ = 0;
  bool finished_ = false;
};

}  // namespace glidepod::glue::simulate
