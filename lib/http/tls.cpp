#include "lib/http/tls.hpp"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <array>
#include <climits>

#include "lib/base/log.hpp"
#include "lib/http/limited_stream.hpp"

namespace glidepod::http {
namespace {

std::string words() {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_peek_last_error(), text.data(), text.size());
  return text.data();
}

bool same(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// Does one thing of OpenSSL until it is done, the deadline is over or the session is broken.
template <typename Step>
ssize_t until_done(ssl_st* session, SteadyTime deadline, const Step& step) {
  while (true) {
    ERR_clear_error();
    const int got = step();
    if (got > 0) return got;
    const int why = SSL_get_error(session, got);
    if (why == SSL_ERROR_ZERO_RETURN) return 0;
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return -1;
    pollfd wait{SSL_get_fd(session), static_cast<short>(why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT), 0};
    int ready = 0;
    do {
      ready = ::poll(&wait, 1, left_until(deadline));
    } while (ready < 0 && errno == EINTR);
    if (ready != 1) return -1;
  }
}

int limited(std::size_t size) {
  return static_cast<int>(std::min<std::size_t>(size, INT_MAX));
}

}  // namespace

TlsSession::~TlsSession() {
  SSL_free(session_);
}

ssize_t TlsSession::read(char* target, std::size_t size, SteadyTime deadline) {
  return until_done(session_, deadline, [&] { return SSL_read(session_, target, limited(size)); });
}

ssize_t TlsSession::write(const char* data, std::size_t size, SteadyTime deadline) {
  return until_done(session_, deadline, [&] { return SSL_write(session_, data, limited(size)); });
}

void TlsSession::close() {
  ERR_clear_error();
  SSL_shutdown(session_);
}

Result<std::unique_ptr<Certificate>> Certificate::load(std::string chain_file, std::string key_file) {
  std::unique_ptr<Certificate> made(new Certificate(std::move(chain_file), std::move(key_file)));
  made->version_ = made->version();
  made->context_ = TRY(made->read());
  return made;
}

Certificate::~Certificate() {
  SSL_CTX_free(context_);
}

Certificate::Version Certificate::version() const {
  struct stat chain {
  }, key{};
  if (::stat(chain_file_.c_str(), &chain) != 0 || ::stat(key_file_.c_str(), &key) != 0) return {};
  return {chain.st_mtim, key.st_mtim, chain.st_ino, key.st_ino};
}

Result<ssl_ctx_st*> Certificate::read() const {
  ERR_clear_error();
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  if (!context) return error("TLS: {}", words());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // Sessions are not resumed, so nothing is kept between connections.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_use_certificate_chain_file(context.get(), chain_file_.c_str()) != 1)
    return error("certificate {}: {}", chain_file_, words());
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_file_.c_str(), SSL_FILETYPE_PEM) != 1)
    return error("key {}: {}", key_file_, words());
  if (SSL_CTX_check_private_key(context.get()) != 1)
    return error("key {} does not belong to certificate {}", key_file_, chain_file_);
  return context.release();
}

void Certificate::refresh() {
  const Version now = version();
  if (same(now.chain, version_.chain) && same(now.key, version_.key) &&
      now.chain_inode == version_.chain_inode && now.key_inode == version_.key_inode)
    return;
  version_ = now;
  const auto fresh = read();
  if (!fresh) return spdlog::error("event=certificate_not_taken reason={}", quoted(fresh.error().message()));
  SSL_CTX_free(context_);  // sessions have their own share of it
  context_ = *fresh;
  spdlog::info("event=certificate file={}", chain_file_);
}

Result<std::unique_ptr<TlsSession>> Certificate::accept(int fd, SteadyTime deadline) {
  if (::fcntl(fd, F_SETFL, O_NONBLOCK) != 0) return Error::system("make a connection non-blocking");
  std::unique_ptr<TlsSession> session;
  ssl_st* raw = nullptr;
  {
    const std::lock_guard lock(mutex_);
    refresh();
    raw = SSL_new(context_);
    if (raw == nullptr) return error("TLS: {}", words());
    session = std::make_unique<TlsSession>(raw);
  }
  if (SSL_set_fd(raw, fd) != 1) return error("TLS: {}", words());
  if (until_done(raw, deadline, [raw] { return SSL_accept(raw); }) != 1) return error("TLS: {}", words());
  return session;
}

}  // namespace glidepod::http
