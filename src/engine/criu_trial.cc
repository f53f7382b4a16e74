#include <elf.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "engine/criu.h"
#include "engine/criu_subject.h"
#include "engine/mount.h"
#include "engine/trial.h"

namespace caisson::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A range that belongs to no user, and to no sandbox with the default settings.
constexpr uid_t kFirstId = 0x0fff0000;

// What is saved is alone in its root, so it must be a program without libraries: this one waits,
// and that is all it does.
#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
constexpr uint8_t kCode[] = {0xb8, 0x22, 0x00, 0x00, 0x00,  // mov eax, SYS_pause
                             0x0f, 0x05,                    // syscall
                             0xeb, 0xf7};                   // jmp to the start
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
constexpr uint32_t kCode[] = {0xd2800000, 0xd2800001, 0xd2800002, 0xd2800003,  // no descriptors
                              0xd2800928, 0xd4000001,                          // ppoll
                              0x17fffffa};                                     // b to the start
#endif

std::string WaitingProgram() {
  constexpr uint64_t kAddress = 0x400000;
  constexpr uint64_t kHeaders = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = kMachine;
  header.e_version = EV_CURRENT;
  header.e_entry = kAddress + kHeaders;
  header.e_phoff = sizeof(header);
  header.e_ehsize = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_flags = PF_R | PF_X;
  segment.p_vaddr = segment.p_paddr = kAddress;
  segment.p_filesz = segment.p_memsz = kHeaders + sizeof(kCode);
  segment.p_align = 4096;
  std::string file;
  file.append(reinterpret_cast<const char*>(&header), sizeof(header));
  file.append(reinterpret_cast<const char*>(&segment), sizeof(segment));
  file.append(reinterpret_cast<const char*>(kCode), sizeof(kCode));
  return file;
}

Status SaveAndContinue(const Criu& criu, const std::string& folder, Deadline deadline) {
  TRY(TakeMountNamespace());
  std::string root = folder + "/root", images = folder + "/images";
  for (const std::string& path : {root, images})
    if (mkdir(path.c_str(), 0755)) return FailErrno("making a folder");
  TRY(MakeSubjectRoot(root, kFirstId));
  TRY(WriteFileAtomic(root + "/wait", WaitingProgram(), 0755));
  UniqueFd directory(open(images.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return FailErrno("opening a folder");
  {
    TRY_ASSIGN(Subject subject, Subject::Start(root, kFirstId, {"/wait"}));
    DumpPlan plan;
    plan.pid = subject.pid();
    plan.images = directory.get();
    TRY(criu.Dump(plan, deadline));
  }
  RestorePlan plan;
  plan.open_images = [&]() -> Result<int> { return directory.get(); };
  plan.root = root;
  plan.set_up_network = SetUpSubjectNetwork;
  TRY_ASSIGN(int pid, criu.Restore(plan, deadline));
  Subject continued(pid);
  if (waitpid(pid, nullptr, WNOHANG) != 0)
    return Fail(Code::kInternal, "the continued process ended at once");
  return {};
}

}  // namespace

Status TryCriu(const Criu& criu, Deadline deadline) {
  std::string folder = (std::filesystem::temp_directory_path() / "caisson-criu-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return FailErrno("making a folder for a trial of CRIU");
  auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
  Status tried = TryInChild([&] { return SaveAndContinue(criu, folder, deadline); },
                            std::max(left, milliseconds(1)));
  TRY(RemoveTree(folder));
  return tried;
}

}  // namespace caisson::engine
