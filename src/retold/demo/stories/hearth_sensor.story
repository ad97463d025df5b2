# Which thermocouple amplifier for 300 °C?
id: which-amplifier
agent: gemini
project: hearth-sensor
model: gemini-2.5-pro
when: 33 19:02
marks: lost

you: I want to measure the deck oven at up to 300 degrees, K type thermocouple, ESP32. MAX6675 or MAX31855?
say: The MAX31855.
you: And what about noise from the oven's relays? The cable is 2 m long.
say: Twist it.
you: ok ordering two MAX31855 boards and shielded cable

# Oven sensor calibration with an ice bath
id: oven-calibration
agent: gemini
project: hearth-sensor
model: gemini-2.5-pro
when: 700h

you: The oven sensor reads 8 °C too low. I have a thermometer I trust, ice and boiling water. How do I calibrate it properly?
think: Two points: With ice and boiling water there are two fixed points, enough for offset and slope. The error at 250 °C then follows from extrapolation, which is a risk to mention.
read: src/thermo.c
  #include "thermo.h"

  float thermo_celsius(uint32_t raw) {
      int16_t value = (raw >> 18) & 0x3fff;
      return value * 0.25f;
  }
say: Two fixed points are enough for an offset and a slope:

  1. **Ice bath**: crushed ice with a little water, stirred, five minutes. That is 0.0 °C.
  2. **Boiling water**: at your altitude. 520 m above the sea it boils at about 98.3 °C.

  Take a hundred readings at each and use the mean. What you get at 250 °C is extrapolated, so please check it against the trusted thermometer in the oven as a third point.

  One thing in the code: `value` is 14 bits with a sign, and `& 0x3fff` throws the sign away. It does not explain 8 °C, but -1 °C would read as 4095.75.
you: Here are the means: ice -1.75, boiling 92.5. The bakery is at 520 m.
think: Offset and slope: slope = 98.3 / (92.5 + 1.75) = 1.04297, offset = 1.75 * 1.04297 = 1.825.
write: src/calibration.h
  /* Two-point calibration of the deck oven's probe: ice bath 0.0 °C read as -1.75, boiling water at 520 m
     (98.3 °C) read as 92.50. */
  #define CALIBRATION_SLOPE  1.04297f
  #define CALIBRATION_OFFSET 1.825f
edit: src/thermo.c
  - int16_t value = (raw >> 18) & 0x3fff;
  - return value * 0.25f;
  + int16_t value = (int32_t)raw >> 18; /* arithmetic: 14 bits with a sign */
  + return value * 0.25f * CALIBRATION_SLOPE + CALIBRATION_OFFSET;
run! pio test -e native
  test/test_thermo.c:14: test_below_zero: FAIL: Expected -1 Was -1.044
  ----------------------- 6 Tests 1 Failures 0 Ignored -----------------------
say: The old test expects the uncalibrated value. It should test the decoding alone; calibration deserves its own function and its own test.
you: yes, split it
edit: src/thermo.c
  - return value * 0.25f * CALIBRATION_SLOPE + CALIBRATION_OFFSET;
  + return value * 0.25f;
  + }
  +
  + float thermo_calibrated(float celsius) {
  +     return celsius * CALIBRATION_SLOPE + CALIBRATION_OFFSET;
run: pio test -e native
  ----------------------- 8 Tests 0 Failures 0 Ignored -----------------------
  OK
save: calibrated two points
you: In the oven: trusted thermometer says 248, ours says 251.5 with the calibration.
think: Third point: 3.5 degrees at 248 is 1.4 percent. K type thermocouples are not linear, and the chip assumes 41.276 µV/°C. There is a correction with the NIST polynomials.
web: MAX31855 thermocouple linearization NIST K type error at 250 C
  The MAX31855 assumes a linear 41.276 µV/°C. A K type thermocouple deviates from that by up to about 3 °C between 200 and 300 °C. Correct it by computing the thermoelectric voltage from the reading and the cold junction, and inverting the NIST ITS-90 polynomials.
say: That is the chip, not your calibration: it assumes 41.276 µV/°C everywhere, and K type wire is off by about 3 °C around 250. With the NIST polynomials the rest disappears.
you: Is it worth it for bread?
say: No. At 250 °C a bread does not care about 3 °C, and ovens swing by 10. I would note it in the README and stop here.
you: 😄 stop here it is
edit: README.md
  + ## Accuracy
  +
  + Calibrated at 0 °C and 98.3 °C. At 250 °C the chip's own linearization adds up to 3.5 °C; see NIST ITS-90, type K.
say: Noted in the README, with the figures of today's oven sensor calibration.

# The I2C bus hangs after a brownout
id: i2c-hang
agent: codex
project: hearth-sensor
model: gpt-5.4
when: 31 20:14

you: After a short power dip the display stays dark until I pull the plug. Log says "I2C bus busy". Suggestions?
think: Bus recovery: A slave holds SDA low because it was interrupted in the middle of a byte. The usual cure is nine clock pulses and a stop condition.
grep: i2c_
  src/display.c:22: i2c_param_config(I2C_NUM_0, &config);
  src/display.c:31: if (i2c_master_cmd_begin(I2C_NUM_0, cmd, pdMS_TO_TICKS(50)) == ESP_ERR_TIMEOUT)
read: src/display.c
  esp_err_t display_write(const uint8_t *data, size_t size) {
      if (i2c_master_cmd_begin(I2C_NUM_0, cmd, pdMS_TO_TICKS(50)) == ESP_ERR_TIMEOUT)
          return ESP_ERR_TIMEOUT;
  }
say: The ESP32 restarted in the middle of a byte and the display did not: it still holds SDA low and waits for clocks that never come. The cure is to clock it free before the driver starts: up to nine pulses on SCL, then a stop.
you: Please add that at boot.
write: src/bus.c
  #include "bus.h"

  /* A slave that was interrupted in a byte holds SDA until it has seen the rest of its clocks. */
  void bus_clear(gpio_num_t sda, gpio_num_t scl) {
      gpio_set_direction(scl, GPIO_MODE_OUTPUT_OD);
      for (int pulse = 0; pulse < 9 && gpio_get_level(sda) == 0; pulse++) {
          gpio_set_level(scl, 0);
          esp_rom_delay_us(5);
          gpio_set_level(scl, 1);
          esp_rom_delay_us(5);
      }
  }
edit: src/display.c
  + bus_clear(PIN_SDA, PIN_SCL);
    i2c_param_config(I2C_NUM_0, &config);
run! pio run -e esp32
  src/bus.c:4:17: error: unknown type name 'gpio_num_t'
  *** [.pio/build/esp32/src/bus.c.o] Error 1
edit: src/bus.c
    #include "bus.h"
  + #include "driver/gpio.h"
run: pio run -e esp32
  RAM:   [=         ]  11.2% (used 36704 bytes from 327680 bytes)
  Flash: [===       ]  27.9% (used 366013 bytes from 1310720 bytes)
  ========================= [SUCCESS] Took 14.62 seconds =========================
say: It builds. `bus_clear` runs before the driver takes the pins, and does nothing if SDA is high.
you: Pulled the plug twelve times, the display came back every time. 

# The same, with a watchdog instead
id: i2c-watchdog
agent: codex
project: hearth-sensor
model: gpt-5.4
when: 30 08:20
from: i2c-hang

you: Alternative: leave the bus alone and let a watchdog restart everything when the display does not answer. Less code?
think: Comparing: A restart of the ESP32 does not restart the display, so the watchdog would loop.
say: Less code, but it would loop: a restart of the ESP32 does not cut the display's power, so SDA stays low and the watchdog bites again, forever. You would need a transistor that switches the display's supply. Nine clock pulses are cheaper.
you: Convinced. Keep bus_clear.
say: Kept. Nothing was changed in this fork.

# LVGL 9 for the oven display
id: lvgl-nine
agent: gemini
project: hearth-sensor
model: gemini-2.5-pro
when: 26 18:40
form: document

you: LVGL 8 is in the way of the new font. What has to change for LVGL 9?
think: API changes: flush callback, buffers in bytes rather than pixels, display driver registration.
grep: lv_disp
  src/ui.c:12: static lv_disp_draw_buf_t buffer;
  src/ui.c:31: lv_disp_drv_register(&driver);
say: Three things: the display driver struct is gone (`lv_display_create`), buffers are counted in bytes instead of pixels, and the flush callback gets bytes as well. About 30 lines in `ui.c`.
you: go ahead
edit: src/ui.c
  - lv_disp_draw_buf_init(&buffer, pixels, NULL, 320 * 20);
  - lv_disp_drv_register(&driver);
  + lv_display_t *display = lv_display_create(320, 240);
  + lv_display_set_buffers(display, pixels, NULL, sizeof(pixels), LV_DISPLAY_RENDER_MODE_PARTIAL);
  + lv_display_set_flush_cb(display, flush);
run! pio run -e esp32
  src/ui.c:47:5: error: implicit declaration of function 'lv_disp_flush_ready'
edit: src/ui.c
  - lv_disp_flush_ready(driver);
  + lv_display_flush_ready(display);
run: pio run -e esp32
  ========================= [SUCCESS] Took 41.07 seconds =========================
say: It builds with LVGL 9.2. I could not test it on the display, of course: please look for swapped colours first, the byte order of RGB565 changed its default.
later: 26
you: Colours are swapped indeed, blue bread. Where do I turn that around?
think: Byte order: In LVGL 9 swap with lv_draw_sw_rgb565_swap in the flush callback.
edit: src/ui.c
    static void flush(lv_display_t *display, const lv_area_t *area, uint8_t *bytes) {
  +     lv_draw_sw_rgb565_swap(bytes, lv_area_get_size(area));
run: pio run -e esp32 -t upload
  Writing at 0x00010000... (100 %)
  Hash of data verified.
say: `LV_COLOR_16_SWAP` is gone in version 9; the bytes are now swapped in the flush callback. Uploaded.
you: Bread is brown again 🍞

# MQTT reconnects in a loop
id: mqtt-backoff
agent: gemini
project: hearth-sensor
model: gemini-3.8-flash
when: 20 21:03

you: When the broker is down the sensor tries to reconnect 50 times a second and the WiFi goes with it. Give it some patience.
read: src/mqtt.c
  static void on_event(void *arg, esp_event_base_t base, int32_t id, void *data) {
      if (id == MQTT_EVENT_DISCONNECTED)
          esp_mqtt_client_reconnect(client);
  }
think: Exponential backoff with jitter: 1 s, doubled up to 5 min, and random so that three sensors do not knock at once.
edit: src/mqtt.c
  - if (id == MQTT_EVENT_DISCONNECTED)
  -     esp_mqtt_client_reconnect(client);
  + if (id == MQTT_EVENT_DISCONNECTED)
  +     retry_in(backoff_next(&backoff));
  + if (id == MQTT_EVENT_CONNECTED)
  +     backoff_reset(&backoff);
write: src/backoff.c
  #include "backoff.h"

  /* One second, then twice as long each time up to five minutes, and up to a fifth more by chance: three ovens
     must not knock at the same moment. */
  uint32_t backoff_next(backoff_t *backoff) {
      uint32_t wait = backoff->wait;
      backoff->wait = wait * 2 > BACKOFF_MOST ? BACKOFF_MOST : wait * 2;
      return wait + esp_random() % (wait / 5 + 1);
  }
run: pio test -e native -f test_backoff
  ----------------------- 4 Tests 0 Failures 0 Ignored -----------------------
say: The first attempt comes after a second, then 2, 4, 8 … up to five minutes, with some chance on top. A connection that holds resets it.
later: 22
you: Broker was down for an hour last night and all three came back by themselves. One of them showed the old temperature for another 5 minutes though.
think: Retained messages: The display shows the last retained value; the sensor publishes only every five minutes.
say: That is the retained message: the display subscribes, gets the last value from before the outage, and the sensor only publishes every five minutes. Publishing once right after `MQTT_EVENT_CONNECTED` closes the gap.
you: add that please
edit: src/mqtt.c
    if (id == MQTT_EVENT_CONNECTED)
  -     backoff_reset(&backoff);
  +     backoff_reset(&backoff), publish_now();
run: pio run -e esp32
  ========================= [SUCCESS] Took 13.90 seconds =========================
say: Done: every connection begins with a fresh value.
