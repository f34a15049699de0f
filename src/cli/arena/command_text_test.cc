#include "cli/arena/command_text.h"

#include <gtest/gtest.h>

namespace swell::cli::arena {
namespace {

TEST(ArenaCommandTextTest, QuotesAroundTheWholeGoAway) {
  // As Arena's guide writes it: "'python main.py --max_steps 5000'".
  EXPECT_EQ(CommandText({"'python main.py --max_steps 5000'"}), "python main.py --max_steps 5000");
  EXPECT_EQ(CommandText({"\"python main.py\""}), "python main.py");
  EXPECT_EQ(CommandText({"python", "main.py", "--lr", "1"}), "python main.py --lr 1");
  EXPECT_EQ(CommandText({"'my prog' a 'b'"}), "'my prog' a 'b'");
  EXPECT_EQ(CommandText({"echo 'a'"}), "echo 'a'");
  EXPECT_EQ(CommandText({"'"}), "'");
  EXPECT_EQ(CommandText({""}), "");
}

TEST(ArenaCommandTextTest, LinesThatCarryOnWithFlagsAreOneLine) {
  EXPECT_EQ(CommandText({"horovodrun\n        -np $((${workers}*${gpus}))\n"
                         "        --host-discovery-script /usr/local/bin/discover_hosts.sh\n"
                         "        python mnist.py\n        "}),
            "horovodrun -np $((${workers}*${gpus})) --host-discovery-script "
            "/usr/local/bin/discover_hosts.sh python mnist.py");
}

TEST(ArenaCommandTextTest, ScriptsStayAsTheyAre) {
  for (const char* script :
       {"cd /data\npython train.py --lr 1", "python train.py \\\n  --lr 1\npython test.py",
        "cat > a.yaml <<E\n- a\nE\npython train.py"}) {
    EXPECT_EQ(CommandText({script}), script);
  }
}

}  // namespace
}  // namespace swell::cli::arena
