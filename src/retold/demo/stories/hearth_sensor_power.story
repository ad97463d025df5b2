# Deep sleep drains the battery
id: deep-sleep
agent: claude
project: hearth-sensor
model: claude-sonnet-4-6
when: 15 20:31

you: The battery sensor in the proofing box lasts 4 days. It should be months. It sleeps 5 minutes, wakes, measures, sends. Where does the energy go?
think: Estimate: 1200 mAh in 4 days is 12.5 mA on average. Deep sleep of the chip itself is 10 µA, so something stays on.
read: src/power.c
  void power_sleep(void) {
      esp_wifi_stop();
      esp_deep_sleep(5 * 60 * 1000000ULL);
  }
web: ESP32 dev board deep sleep current CP2102 AMS1117 quiescent
  Typical ESP32 development boards draw 5 to 15 mA in deep sleep, because the USB serial converter and the linear regulator stay powered. AMS1117: about 5 mA quiescent.
say: Not in the code. 1200 mAh over four days is 12.5 mA on average, and the chip needs 0.01 mA asleep. It is the **board**: the AMS1117 regulator alone takes 5 mA, the USB chip and the power LED the rest.

  A bare module with an MCP1700 (2 µA) gets you to about 0.3 mA on average, that is five months.
you: Can I do anything on this board in the meantime?
say: Scratch off the power LED (3 mA), and sleep longer when nothing changes. The proofing box moves slowly: 15 minutes would do, and saves a third of the rest.
you: Make the interval depend on the change since the last reading.
edit: src/power.c
  - esp_deep_sleep(5 * 60 * 1000000ULL);
  + /* What hardly changes is looked at less often. */
  + uint32_t minutes = fabsf(celsius - last_celsius) > 0.5f ? 5 : 15;
  + esp_deep_sleep(minutes * 60 * 1000000ULL);
run: pio run -e proofbox
  ========================= [SUCCESS] Took 12.71 seconds =========================
say: `last_celsius` lives in RTC memory, so it survives deep sleep. I measured nothing, that is yours to do.
shell: git commit -am "Sleep longer while the dough is patient"
  [main 51f7c0e] Sleep longer while the dough is patient
   1 file changed, 4 insertions(+), 1 deletion(-)
you: What would you put on the next board?
say: ESP32-C3 module, MCP1700 regulator, no LED, and a pad to measure the current without cutting a trace.

# 温度センサーの移動平均
id: moving-average
agent: gemini
project: hearth-sensor
model: gemini-2.5-pro
when: 7 12:10

you: オーブンの温度表示が細かく揺れて読みにくいです。移動平均フィルタを入れたいのですが、ドアを開けたときの急な変化はすぐに表示したいです。
think: フィルタの選択: 単純な移動平均は急な変化に遅れる。中央値フィルタか、変化量に応じて係数を変える指数移動平均がよい。
read: src/display_loop.c
  void display_loop(void) {
      show(thermo_calibrated(thermo_celsius(read_raw())));
  }
say: 単純な移動平均では、ドアを開けたときの変化が窓の長さだけ遅れます。指数移動平均の係数を、差が大きいときだけ大きくするのが簡単です。

  - 差が 2 °C 未満: 係数 0.1（揺れを抑える）
  - 差が 2 °C 以上: 係数 0.8（すぐに追従する）
you: それでお願いします。テストも書いてください。
write: src/smooth.c
  #include "smooth.h"

  /* 小さな揺れは抑え、ドアを開けたときの変化はすぐに見せる。 */
  float smooth(float shown, float measured) {
      float difference = measured - shown;
      float weight = fabsf(difference) < 2.0f ? 0.1f : 0.8f;
      return shown + weight * difference;
  }
run: pio test -e native -f test_smooth
  ----------------------- 3 Tests 0 Failures 0 Ignored -----------------------
say: 追加しました。テストは三つです: 揺れが小さくなること、ドアを開けたら三回以内に追いつくこと、同じ温度なら変わらないこと。
you: 表示がとても見やすくなりました。ありがとう！

# Roll back a bad over-the-air update
id: ota-rollback
agent: claude
project: hearth-sensor
model: claude-opus-4-6
when: 4 19:22

you: Yesterday's OTA update left the upper oven without display until I climbed up with a cable. How do we make a bad update roll back by itself?
think: ESP-IDF rollback: The bootloader can mark a new image as pending verification and go back unless the app confirms it.
grep: esp_ota
  src/update.c:40: esp_ota_set_boot_partition(next);
  src/update.c:41: esp_restart();
fetch: https://docs.espressif.com/projects/esp-idf/en/stable/esp32/api-reference/system/ota.html
  With CONFIG_BOOTLOADER_APP_ROLLBACK_ENABLE a new app starts in state PENDING_VERIFY. If it does not call esp_ota_mark_app_valid_cancel_rollback() before the next restart, the bootloader goes back to the previous app.
say: The bootloader can do it. With rollback enabled, a new image is on probation: unless it calls `esp_ota_mark_app_valid_cancel_rollback()` before the next restart, the old one comes back.

  The question is what counts as healthy. I would say: a plausible temperature (-10 to 350 °C), WiFi, and one message delivered, all within 90 seconds.
you: And the display answers on I2C. Implement it.
read! src/health.c
  File does not exist.
write: src/health.c
  #include "health.h"

  /* A new image is on probation until all four are true; the bootloader goes back to the old one otherwise. */
  bool health_is_good(void) {
      return thermo_is_plausible() && wifi_is_up() && mqtt_has_delivered() && display_answers();
  }

  void health_task(void *unused) {
      for (int second = 0; second < 90; second++) {
          if (health_is_good()) {
              esp_ota_mark_app_valid_cancel_rollback();
              vTaskDelete(NULL);
          }
          vTaskDelay(pdMS_TO_TICKS(1000));
      }
      esp_ota_mark_app_invalid_rollback_and_reboot();
  }
edit: sdkconfig.defaults
  + CONFIG_BOOTLOADER_APP_ROLLBACK_ENABLE=y
run: pio run -e esp32
  ========================= [SUCCESS] Took 15.33 seconds =========================
say: Built. Careful: the bootloader itself must be flashed **once by cable**, since rollback is a setting of the bootloader and OTA does not replace that.
you: So one more climb. Then test it with an image that has the display on the wrong pins.
say: Good test: it fails exactly one of the four conditions. It should come back to the old version after 90 seconds.
you: It did! After 94 seconds.
say: 90 for the probation and about 4 to boot.

# Notice when somebody opens the oven door
id: door-open
agent: gemini
project: hearth-sensor
model: gemini-3.8-flash
when: 1 08:15

you: Can we tell from the temperature alone when the oven door is opened? I'd like to count how often.
think: Gradient: A door makes the air temperature fall by several degrees within seconds; the thermal mass of the deck makes it recover.
list: data
  friday.csv
  monday.csv
read: data/monday.csv
  second,celsius
  0,248.2
  10,248.1
  20,241.7
  30,238.9
  40,240.2
say: Yes. When it opens the air falls by 6 °C in ten seconds and recovers within a minute; nothing else does that. A fall of more than 4 °C in 10 s is an opening, and the next one counts only after the temperature has risen again.
shell: wc -l data/monday.csv
  8641 data/monday.csv
you: count monday for me
run: python scripts/doors.py data/monday.csv
  openings: 31
  busiest: 05:10 to 05:40 (9)
say: 31 times on Monday, nine of them between 5:10 and 5:40. That is when the rolls are turned, I suppose.

# What did the ovens cost last week?
id: oven-costs
agent: codex
project: hearth-sensor
model: gpt-5.5
when: 12 20:05

you: From the logged temperatures of the three decks, estimate how many hours each was heating last week, and what that cost at 0.31 €/kWh. Each deck has 7.5 kW.
think: Heating time: Temperature rises while heating; hysteresis of about 4 degrees. Count seconds with a positive slope.
write: scripts/costs.py
  """Hours of heating, from the slope of the temperature."""

  import csv
  import sys

  KILOWATTS, EURO = 7.5, 0.31


  def heating_hours(rows: list[tuple[float, float]]) -> float:
      pairs = zip(rows, rows[1:], strict=False)
      return sum(later - sooner for (sooner, cold), (later, warm) in pairs if warm > cold + 0.05) / 3600
each: deck | hours | euro
  upper | 31.4 | 73.01
  middle | 36.9 | 85.79
  lower | 22.0 | 51.15
  ---
  run: python scripts/costs.py data/{deck}.csv
    {deck}: {hours} h heating, {euro} €
say: About 210 € in the week: upper 73 €, middle 86 €, lower 51 €. It is an estimate from the slope only; the thermostat's own log would be better.
you: The middle one is always the worst. Is the door seal a plausible reason?
say: Plausible: it heats 17 % longer than the upper deck at the same setting, and it cools faster when nobody opens it. Compare how fast each cools at night, with doors closed. A leaking seal shows there and nowhere else.
you: And if we simply insulated all three?
say: With what you have measured so far I would only be guessing. Insulation helps all three alike, and the question was why the middle one is different.
rewind:
you: good idea, will measure tonight
notice: info: Heads up: 25 % of your weekly limit is left.
